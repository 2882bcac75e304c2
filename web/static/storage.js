// The browser's private place for files of this page: one flat folder of files, for one tab at a time.

/** Milliseconds: a page that is reloaded may hold the folder for a moment longer. */
const PATIENCE = 3000;

/** Hold a name until this worker ends; whether that succeeds. */
function hold(name) {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), PATIENCE);
    return new Promise((answer) => {
        const held = () => {
            clearTimeout(timer);
            answer(true);
            return new Promise(() => {});
        };
        navigator.locks.request(name, { signal: late.signal }, held).catch(() => answer(false));
    });
}

/** What went wrong, as a text: `full`, or a sentence. */
function words(error) {
    return error?.name === 'QuotaExceededError' ? 'full' : String(error?.message ?? error);
}

async function said(action) {
    try {
        return await action();
    } catch (error) {
        throw words(error);
    }
}

class Storage {
    /** Why it cannot be used: `tab`, if another one has it, or a sentence; nothing if it can. */
    refused = '';
    #folder;

    async open(name) {
        try {
            const root = await navigator.storage.getDirectory();
            if (!await hold(name)) {
                this.refused = 'tab';
                return;
            }
            this.#folder = await root.getDirectoryHandle(name, { create: true });
        } catch (error) {
            this.refused = words(error);
        }
    }

    names() {
        return said(async () => {
            const names = [];
            for await (const name of this.#folder.keys()) names.push(name);
            return names;
        });
    }

    /** Bytes of a file, fewer if it is shorter. */
    read(name, from, bytes) {
        return said(async () => {
            const file = await (await this.#folder.getFileHandle(name)).getFile();
            return new Uint8Array(await file.slice(from, from + bytes).arrayBuffer());
        });
    }

    /** Replace all of a file from a byte on, and wait until it is on the disk. */
    write(name, from, bytes) {
        return said(async () => {
            const file = await this.#folder.getFileHandle(name, { create: true });
            if (!file.createSyncAccessHandle) {
                const stream = await file.createWritable({ keepExistingData: from > 0 });
                await stream.truncate(from);
                await stream.write({ type: 'write', position: from, data: bytes });
                return stream.close();
            }
            const access = await file.createSyncAccessHandle();
            try {
                access.truncate(from);
                if (access.write(bytes, { at: from }) !== bytes.byteLength) throw 'full';
                access.flush();
            } finally {
                access.close();
            }
        });
    }

    remove(name) {
        return said(() => this.#folder.removeEntry(name));
    }
}

/** Open the folder of this page: one origin may hold several copies of Braid. */
export async function openStorage() {
    // This file lies in the build's folder; what is kept outlives a build.
    const { pathname } = new URL('..', import.meta.url);
    const storage = new Storage();
    await storage.open(`braid${pathname.replace(/[^a-z0-9.-]/gi, (c) => `_${c.charCodeAt(0).toString(16)}`)}`);
    return storage;
}
