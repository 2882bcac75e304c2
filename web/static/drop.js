// Files and folders that are dropped on the page, with their paths. The window's own way has no folders.

/** Bytes at once, at most: they pass through the page's memory. */
const MOST = 1 << 30;

async function walk(entry, above, found) {
    if (entry.isFile) {
        found.push([above + entry.name, await new Promise((done, failed) => entry.file(done, failed))]);
        return;
    }
    const reader = entry.createReader();
    for (;;) {
        // Some at a time; none at the end.
        const some = await new Promise((done, failed) => reader.readEntries(done, failed));
        if (some.length === 0) return;
        for (const inside of some) await walk(inside, `${above}${entry.name}/`, found);
    }
}

async function read(items) {
    const found = [];
    for (const item of items) {
        if (item instanceof File) found.push([item.name, item]);
        else await walk(item, '', found);
    }
    const bytes = found.reduce((sum, [, file]) => sum + file.size, 0);
    if (bytes > MOST) throw new Error('more than 1 GiB at once is too much for a page');
    const contents = [];
    for (const [, file] of found) contents.push(new Uint8Array(await file.arrayBuffer()));
    return [found.map(([path]) => path), contents];
}

/** Pass what is dropped on: paths and contents, or why they cannot be read. */
export function listen(give) {
    window.addEventListener('drop', (event) => {
        event.preventDefault();
        // They can be asked for during the event only.
        const items = [...(event.dataTransfer?.items ?? [])].filter((item) => item.kind === 'file');
        const all = items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean);
        if (all.length === 0) return;
        read(all).then(
            ([paths, contents]) => give(paths, contents, ''),
            (error) => give([], [], String(error?.message ?? error)),
        );
    }, true);
    window.addEventListener('dragover', (event) => event.preventDefault());
}
