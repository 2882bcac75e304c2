// Keeps the files of one build, so that the page opens without a network.
//
// All files but this one and index.html lie in a folder named after their content: they are answered from the cache and
// cannot be stale. The page itself comes from the network while there is one.

const BUILD = '@BUILD@';
const FILES = [@FILES@];
// One origin may hold several copies of Braid.
const PREFIX = `braid ${self.registration.scope} `;
const CACHE = PREFIX + BUILD;

self.addEventListener('install', (event) => {
    event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(['./', ...FILES])).then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
    event.waitUntil((async () => {
        const names = await caches.keys();
        const old = names.filter((name) => name.startsWith(PREFIX) && name !== CACHE);
        await Promise.all(old.map((name) => caches.delete(name)));
        await self.clients.claim();
    })());
});

self.addEventListener('fetch', (event) => {
    const { request } = event;
    if (request.method !== 'GET' || !request.url.startsWith(self.registration.scope)) return;
    event.respondWith((async () => {
        const cache = await caches.open(CACHE);
        const page = request.mode === 'navigate';
        const kept = await cache.match(page ? './' : request);
        if (kept && !page) return kept;
        try {
            return await fetch(request);
        } catch (error) {
            if (kept) return kept;
            throw error;
        }
    })());
});
