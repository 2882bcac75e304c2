// The first file of the worker: finds out about WebGPU, then hands over to the engine.

import init, { start } from './worker.js';
import { openStorage } from './storage.js';

/** Where the way to a GPU ends: nothing if one opens. */
async function missing() {
    if (!navigator.gpu) return self.isSecureContext ? 'api' : 'secure';
    const adapter = await navigator.gpu.requestAdapter().catch(() => null);
    if (!adapter) return 'adapter';
    try {
        (await adapter.requestDevice()).destroy();
    } catch {
        return 'device';
    }
    return adapter.info?.isFallbackAdapter ? 'hardware' : '';
}

// A text instead of bytes tells the page that this worker is broken.
self.addEventListener('error', (event) => self.postMessage(event.message));
self.addEventListener('unhandledrejection', (event) => self.postMessage(String(event.reason?.message ?? event.reason)));

// The first message is the compiled module; what comes before it runs is kept for it.
self.onmessage = async ({ data: module }) => {
    const early = [];
    self.onmessage = ({ data }) => early.push(data);
    const [found, storage] = await Promise.all([missing(), openStorage(), init({ module_or_path: module })]);
    await start(early, found, storage);
    self.close();
};
