#!/bin/sh
# Figures that are shown once: ./x evidence NAME
#
#   verify             golden cases on cpu f64, cpu f32 and a GPU adapter: worst error over limit of each group
#   shakespeare FILE   five models, three seeds each, on a text: validation loss, wall time, tokens/s
#   bits               200 steps at once, and as 100 + resume to 200; twice; one and two threads: byte-equal files
#   kills              kill -9 at 50 random moments of a run that saves every step: the folder always resumes
#   counts             submissions, passes, and what is created, in a steady step on a GPU adapter
#   faults             bad inputs and the sentence that each gets
#   mechanisms FILE    every mechanism, dense and with experts, 500 steps on a text: validation loss, speed, parameters
#   frames             what recording routing frames costs, paired; where the time of the window's frames goes while it trains
#   web                the page: sizes, times, speed beside a native program, memory (headless Chromium, without a GPU)
#   memory MINUTES     resident memory of a window that trains, minute by minute (needs a display, such as Xvfb)
#   first              a fresh clone: build time of the main job, then time to the first printed loss
set -eu
cd "$(dirname "$0")/.."
name="${1:-help}"
[ $# -gt 0 ] && shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# BRAID=/path/to/braid uses a program that is built already.
build() {
    braid="${BRAID:-}"
    [ -n "$braid" ] && return
    cargo build --release --locked --quiet
    braid="$PWD/target/release/braid"
}

small="--set model.layers=2 --set model.width=32 --set model.context=32 --set train.batch=4"

evidence_verify() {
    build
    for device in "--device cpu --dtype f64" "--device cpu" "--device gpu"; do
        echo "== braid verify tests/golden $device"
        # shellcheck disable=SC2086  # two words
        "$braid" verify tests/golden $device
    done
}

evidence_shakespeare() {
    [ -f "${1:-}" ] || { echo "usage: ./x evidence shakespeare FILE"; exit 2; }
    build
    out="${2:-$work}"
    for seed in 1 2 3; do
        for model in "kind=\"standard\"" "kind=\"delta\" granularity=\"block\" sublayers_per_block=4" \
            "kind=\"attn_res\" sublayers_per_block=4" "kind=\"dar\" layers_per_block=1" "kind=\"dar\" layers_per_block=2"; do
            sets=""
            for pair in $model; do sets="$sets --set residual.$pair"; done
            folder="$out/$(echo "$model" | tr -cd 'a-z0-9')-$seed"
            [ -f "$folder/done" ] && { cat "$folder/done"; continue; }
            begin=$(date +%s)
            # shellcheck disable=SC2086
            "$braid" train --data "$1" --set 'data.tokenizer="char"' --seed "$seed" --device cpu --out "$folder" $sets \
                --set model.layers=4 --set model.width=128 --set model.heads=4 --set model.ffn=384 --set model.context=64 \
                --set train.batch=12 --steps 2000 --set train.lr=1e-3 --set train.min_lr=1e-4 --set train.warmup=100 \
                --set train.beta1=0.9 --set train.beta2=0.95 --set train.weight_decay=0.1 --set train.clip=1.0 \
                --set train.eval_batches=0 --set train.eval_every=2000 --set train.save_every=2000 --json >"$folder.log" 2>&1
            seconds=$(($(date +%s) - begin))
            loss=$(grep '"event":"done"' "$folder.log" | sed 's/.*"val_loss":\([0-9.]*\).*/\1/')
            rates=$(grep '"event":"train"' "$folder.log" | sed 's/.*"tokens_per_s":\([0-9.]*\).*/\1/' | sort -n)
            middle=$(echo "$rates" | sed -n "$((($(echo "$rates" | wc -l) + 1) / 2))p")
            echo "$model  seed $seed  val_loss $loss  wall $seconds s  median $middle tokens/s" | tee "$folder/done"
        done
    done
}

same() {
    for file in model.safetensors optimizer.safetensors; do
        cmp "$1/checkpoints/step-000200/$file" "$2/checkpoints/step-000200/$file"
    done
    # Seconds and rates are the only fields that may differ.
    for run in "$1" "$2"; do
        sed 's/"tokens_per_s":[^,}]*//; s/"seconds":[^,}]*//; s/"path":[^,}]*//; s/"run":[^,}]*//' "$run/metrics.jsonl" |
            grep -E '"event":"(train|eval|routing)"' >"$run.metrics"
    done
    cmp "$1.metrics" "$2.metrics"
    echo "equal: $(basename "$1") and $(basename "$2"): weights, moments, $(wc -l <"$1.metrics") records"
}

evidence_bits() {
    build
    for device in cpu gpu; do
        # shellcheck disable=SC2086
        train() { "$braid" train --device "$device" $small --steps 200 --set train.save_every=50 --out "$@" >/dev/null 2>&1; }
        train "$work/$device-once"
        train "$work/$device-again"
        train "$work/$device-resumed" --until 100
        "$braid" train --device "$device" --resume "$work/$device-resumed" >/dev/null 2>&1
        same "$work/$device-once" "$work/$device-again"
        same "$work/$device-once" "$work/$device-resumed"
    done
    for threads in 1 2; do
        # shellcheck disable=SC2086
        RAYON_NUM_THREADS=$threads "$braid" train --device cpu $small --steps 200 --out "$work/threads-$threads" >/dev/null 2>&1
    done
    same "$work/threads-1" "$work/threads-2"
}

evidence_kills() {
    build
    run="$work/run"
    # shellcheck disable=SC2086
    "$braid" train --device cpu $small --steps 100000 --until 5 --set train.save_every=1 --set train.eval_every=50 --out "$run" >/dev/null 2>&1
    last=0
    for kill in $(seq 50); do
        "$braid" train --device cpu --resume "$run" >"$work/log" 2>&1 &
        pid=$!
        sleep "0.$(awk -v seed="$kill" 'BEGIN { srand(seed); printf "%03d", 50 + int(rand() * 900) }')"
        kill -9 $pid 2>/dev/null || { echo "kill $kill: the run had ended"; cat "$work/log"; exit 1; }
        wait $pid 2>/dev/null || true
        step=$(sed 's/step-0*//' "$run/last")
        [ "$step" -ge "$last" ] || { echo "kill $kill: back from step $last to $step"; exit 1; }
        last=$step
    done
    step=$((last + 3))
    "$braid" train --device cpu --resume "$run" --until $step >/dev/null 2>&1
    echo "50 kills, last at step $last; resumed to $(cat "$run/last")"
}

evidence_counts() {
    cargo test --quiet --locked -p braid-tests --test training steady -- --nocapture
}

evidence_faults() {
    build
    cd "$work"
    fault() {
        echo "\$ braid $*"
        "$braid" "$@" 2>&1 | tail -n "${lines:-4}" || true
        echo
    }
    printf 'To be' >short.txt
    : >empty.txt
    head -c 5000 /dev/urandom >binary.bin
    fault train --data short.txt --out a
    fault train --data empty.txt --out a
    fault train --data binary.bin --set 'data.tokenizer="char"' --out a
    fault train --set model.heads=3 --out a
    # shellcheck disable=SC2086
    fault train --device cpu $small --steps 50 --set train.lr=1e6 --out diverged
    # shellcheck disable=SC2086
    "$braid" train --device cpu $small --steps 8 --until 4 --out run >/dev/null 2>&1
    cp -r run cut
    truncate -s 1000 cut/checkpoints/*/model.safetensors
    fault train --resume cut
    # shellcheck disable=SC2086
    "$braid" train --device cpu $small --steps 8 --until 4 --set 'residual.kind="delta"' --out other >/dev/null 2>&1
    cp other/checkpoints/step-000004/*.safetensors run/checkpoints/step-000004/
    fault train --resume run
    fault train --device nonsense --out a
    fault train --out /proc/braid
}

evidence_first() {
    git clone --quiet . "$work/clone"
    cd "$work/clone"
    begin=$(date +%s)
    cargo build --release --quiet
    built=$(date +%s)
    echo "build: $((built - begin)) s"
    timeout 60 ./target/release/braid train --json --steps 2 2>/dev/null | grep -m1 '"event":"train"'
    echo "first loss after $(($(date +%s) - built)) s"
}

# Median of the lines of a number each.
median() { sort -n | awk '{ all[NR] = $1 } END { print NR % 2 ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2 }'; }

evidence_mechanisms() {
    [ -f "${1:-}" ] || { echo "usage: ./x evidence mechanisms FILE"; exit 2; }
    build
    file="$1"
    dense='feed_forward.kind="swiglu"'
    experts='feed_forward.kind="moe" feed_forward.experts=8 feed_forward.top_k=2 feed_forward.intermediate_size=96'
    sets() { for pair in "$@"; do printf -- '--set %s ' "$pair"; done; }
    run() {
        # shellcheck disable=SC2046,SC2086
        "$braid" train --data "$file" --set 'data.tokenizer="char"' --device cpu $(sets $1 $2) --set model.layers=4 --set model.width=64 \
            --set model.heads=4 --set model.context=64 --set train.batch=8 --set train.warmup=50 --set train.eval_batches=0 \
            --set train.eval_every=500 --set train.save_every=500 --json --steps "$3" $4
    }
    rate() { run "$1" "$2" 60 "--out $work/rate" | grep '"event":"train"' | tail -n 40 | sed 's/.*"tokens_per_s":\([0-9.]*\).*/\1/' | median; rm -rf "$work/rate"; }
    parameters() { run "$1" "$2" 500 --dry-run | sed 's/.*"parameters":\([0-9]*\),"active_parameters".*/\1/'; }
    echo "mechanism | feed-forward | val_loss | tokens/s over standard dense | parameters beyond standard"
    while read -r mechanism; do
        for forward in "$dense" "$experts"; do
            name=$(echo "$forward" | sed 's/.*kind="\([a-z]*\)".*/\1/')
            out="$work/run"
            loss=$(run "$mechanism" "$forward" 500 "--out $out" 2>/dev/null | grep '"event":"done"' | sed 's/.*"val_loss":\([0-9.]*\).*/\1/')
            rm -rf "$out"
            # Side by side, three times: machines are noisy.
            ratio=$(for _ in 1 2 3; do
                base=$(rate 'residual.kind="standard"' "$dense" 2>/dev/null)
                own=$(rate "$mechanism" "$forward" 2>/dev/null)
                echo "$own $base" | awk '{ print $1 / $2 }'
            done | median)
            extra=$(($(parameters "$mechanism" "$forward") - $(parameters 'residual.kind="standard"' "$forward")))
            printf '%s | %s | %s | %.2f | %s\n' "$(echo "$mechanism" | sed 's/residual\.//g; s/kind=//; s/"//g')" "$name" "$loss" "$ratio" "$extra"
        done
    done <<LIST
residual.kind="standard"
residual.kind="attn_res"
residual.kind="attn_res" residual.sublayers_per_block=4
residual.kind="sep_v"
residual.kind="delta"
residual.kind="delta" residual.granularity="block" residual.sublayers_per_block=4
residual.kind="delta" residual.mode="centered"
residual.kind="dar" residual.layers_per_block=1
residual.kind="dar" residual.layers_per_block=2
residual.kind="mhc2_matched"
residual.kind="hyper_connections" residual.streams=2 residual.dynamic=false
residual.kind="hyper_connections" residual.streams=2
residual.kind="hyper_connections" residual.streams=4
residual.kind="mhc" residual.streams=2
residual.kind="mhc" residual.streams=2 residual.projection="exact2"
residual.kind="mhc" residual.streams=4
residual.kind="dense_former"
residual.kind="transparent"
residual.kind="transparent" residual.init="recent"
residual.kind="cumulative"
residual.kind="cumulative" residual.read="add"
LIST
}

evidence_frames() {
    cargo test --quiet --locked --workspace --test app frames_cost -- --ignored --nocapture | grep steps/s
    cargo test --quiet --locked --workspace --test ui a_frame_of_the_window -- --ignored --nocapture | grep 1400x900
    build
    cd "$work"
    if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
        "$braid" ui --device cpu --frame-times 300
    else
        # A screen in memory. What draws for it may be the processor, whose cores the training wants too.
        xvfb-run -a -s "-screen 0 1400x900x24" "$braid" ui --device cpu --frame-times 300
    fi
}

evidence_memory() {
    build
    cd "$work"
    "$braid" train --ui --device cpu --steps 1000000 >log 2>&1 &
    pid=$!
    trap 'kill $pid 2>/dev/null; rm -rf "$work"' EXIT
    for minute in $(seq "${1:-10}"); do
        sleep 60
        step=$(tail -n 1 runs/*/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')
        echo "minute $minute: $(awk '/VmRSS/ { print int($2 / 1024) " MiB" }' /proc/$pid/status), step $step"
    done
}

evidence_web() {
    build
    sh web/build.sh
    optimizer=$(command -v wasm-opt || true)
    # As in web/build.sh, which leaves old ones alone.
    if [ -n "$optimizer" ] && [ "$($optimizer --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')" -ge 118 ]; then
        echo "sizes after wasm-opt, $($optimizer --version)"
    else
        echo "sizes without wasm-opt: there is none of version 118 or later here"
    fi
    for part in page worker; do
        file=$(echo web/dist/*/${part}_bg.wasm)
        small="not known, there is no brotli here"
        command -v brotli >/dev/null && small="$(brotli -q 11 -c "$file" | wc -c)"
        echo "size of $part: $(wc -c <"$file") bytes, gzip -9 $(gzip -9 -c "$file" | wc -c), brotli 11 $small"
    done
    BRAID="$(command -v "$braid")" cargo test --quiet --locked --workspace --test browser evidence_ -- --ignored --nocapture --test-threads 1 \
        --skip pictures | grep -E '^(times|speed|memory)'
}

case "$name" in
    verify | shakespeare | bits | kills | counts | faults | mechanisms | frames | web | memory | first) "evidence_$name" "$@" ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" ;;
esac
