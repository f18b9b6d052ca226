/**
 * `npm start`: three kits over one Postgres, which deliver parcels, and keys that kill one. `--kill 2` runs without
 * keys: it kills kit 2 after a moment, waits, and counts the parcels.
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Kits } from "./demo/kits.ts";
import { drawScreen } from "./demo/screen.ts";

const { values } = parseArgs({ options: { kill: { type: "string" } } });
const isScreen = values.kill === undefined && process.stdin.isTTY === true && process.stdout.isTTY === true;
const stop = new AbortController();

console.log("Starts a Postgres and three kits …");
await using kits = await Kits.start();
const sending = kits.send(150, stop.signal);
if (isScreen) await play();
else await show(Number(values.kill ?? 2));
stop.abort();
await sending;
await count();

/** Draws the screen five times a second, and handles the keys. */
async function play(): Promise<void> {
  let delivered = 0;
  let isCounting = false;
  const draw = (): void => {
    process.stdout.write(`\u001b[H\u001b[J${drawScreen(kits, delivered)}\n`);
    if (isCounting) return;
    isCounting = true;
    void kits.delivered().then((now) => {
      delivered = now;
      isCounting = false;
    });
  };
  process.stdout.write("\u001b[?25l\u001b[2J");
  const timer = setInterval(draw, 200);
  process.stdin.setRawMode(true).setEncoding("utf8").resume();
  await new Promise<void>((resolve) => {
    process.stdin.on("data", (key: string) => {
      const kit = kits.kits[Number(key) - 1];
      if (kit !== undefined) void (kit.state === "killed" ? kits.startKit(kit) : kits.kill(kit));
      if (key === "q" || key === "\u0003") resolve();
    });
  });
  clearInterval(timer);
  process.stdin.setRawMode(false).pause();
  process.stdout.write("\u001b[?25h\n");
}

async function show(number: number): Promise<void> {
  const kit = kits.kits[number - 1];
  if (kit === undefined) throw new Error(`There is no kit ${number}: --kill takes 1, 2 or 3.`);
  while (kits.parcels.atWork(kit.child?.pid ?? 0).length === 0) await delay(20);
  await delay(2_000);
  while (kits.parcels.atWork(kit.child?.pid ?? 0).length === 0) await delay(20);
  await kits.kill(kit);
  await kits.startKit(kit);
  await delay(1_000);
  for (const line of kits.story) console.log(line);
}

/** Waits until every accepted parcel is delivered. */
async function count(): Promise<void> {
  const accepted = kits.accepted.size;
  let delivered = await kits.delivered();
  for (let attempt = 0; delivered < accepted && attempt < 300; attempt += 1) {
    await delay(100);
    delivered = await kits.delivered();
  }
  console.log(
    `${accepted} parcels were accepted, ${delivered} were delivered: ${verdict(accepted, delivered)}.`,
  );
  if (delivered !== accepted) process.exitCode = 1;
}

function verdict(accepted: number, delivered: number): string {
  if (delivered === accepted) return "nothing lost, nothing twice";
  return delivered < accepted ? `${accepted - delivered} are lost` : `${delivered - accepted} came twice`;
}
