// Looks for what the page needs, loads the window and the engine, and says how far it is.

import init, { dropped, start } from './page.js';
import { listen } from './drop.js';

// Bytes of the two modules, written here when they are built: what a server says counts what it has compressed.
const SIZES = { page: @PAGE_BYTES@, worker: @WORKER_BYTES@ };

const said = document.getElementById('said');
const progress = document.getElementById('progress');
const here = (file) => new URL(file, import.meta.url);

/** Why this browser cannot show the window, as a sentence; nothing if it can. */
function obstacle() {
    // A function that returns a 128-bit vector: the engine computes with them.
    const simd = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
    if (typeof WebAssembly !== 'object' || !WebAssembly.validate(new Uint8Array(simd))) {
        return 'Braid needs WebAssembly with 128-bit SIMD, which browsers have since 2021 to 2023: update this one.';
    }
    if (!document.createElement('canvas').getContext('webgl2')) {
        return 'Braid draws with WebGL2, which this browser does not offer. Switch on graphics acceleration in its settings, or use another browser. The same program runs on a desktop: braid ui.';
    }
    return '';
}

const loaded = { page: 0, worker: 0 };

/** Fetch and compile a module while its bytes arrive. */
async function load(name) {
    const response = await fetch(here(`${name}_bg.wasm`));
    if (!response.ok) throw new Error(`${name}_bg.wasm: the server answers ${response.status}`);
    const counted = response.body.pipeThrough(new TransformStream({
        transform(chunk, to) {
            loaded[name] += chunk.byteLength;
            const share = (loaded.page + loaded.worker) / (SIZES.page + SIZES.worker);
            progress.value = share;
            said.textContent = share < 1 ? `Loading ${Math.floor(100 * share)} %` : 'Compiling';
            to.enqueue(chunk);
        },
    }));
    // Said here, since not every server knows the type.
    return WebAssembly.compileStreaming(new Response(counted, { headers: { 'Content-Type': 'application/wasm' } }));
}

/** A keyboard on the screen covers the lower part of the page, in browsers that do not shrink it: the window takes what is left. */
function followKeyboard(canvas) {
    const view = window.visualViewport;
    view?.addEventListener('resize', () => {
        if (view.scale === 1) canvas.style.height = view.height < window.innerHeight - 1 ? `${view.height}px` : '';
    });
}

function fail(sentence) {
    said.textContent = sentence;
    progress.remove();
    document.getElementById('loading').hidden = false;
}

async function main() {
    const why = obstacle();
    if (why) return fail(why);
    const [page, engine] = await Promise.all([load('page'), load('worker')]);
    await init({ module_or_path: page });
    said.textContent = 'Opening the window';
    const canvas = document.getElementById('window');
    followKeyboard(canvas);
    await start(canvas, here('worker-start.js').href, engine);
    document.getElementById('loading').hidden = true;
    progress.remove();
    listen(dropped);
    // Works without a network from the next visit on. Files carry the build in their path, so none is ever stale.
    navigator.serviceWorker?.register(new URL('../service-worker.js', import.meta.url)).catch(() => {});
}

main().catch((error) => fail(`Braid cannot start: ${error.message ?? error}. Reload the page; if that does not help, please report this sentence.`));
