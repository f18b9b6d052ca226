import { styleText } from "node:util";
import type { Kits } from "./kits.ts";

const width = 78;
const lines = 8;

/** The cluster as text, at most 80 columns wide. */
export function drawScreen(kits: Kits, delivered: number): string {
  const rows = kits.kits.map((kit, index) => {
    const pid = kit.child?.pid ?? 0;
    const atWork = kit.state === "working" ? kits.parcels.atWork(pid).length : 0;
    const color = kit.state === "working" ? "green" : kit.state === "starting" ? "yellow" : "red";
    return [
      styleText("bold", ` ${index + 1} `),
      styleText(color, `● ${kit.name}`),
      styleText(color, kit.state.padEnd(9)),
      styleText("dim", kit.url),
      `${"▮".repeat(Math.min(atWork, 12)).padEnd(12, "·")} ${`${kits.parcels.done(pid)}`.padStart(5)} steps done`,
    ].join("  ");
  });
  const underWay = kits.accepted.size - delivered;
  return [
    styleText("bold", " Three kits, one Postgres"),
    styleText("dim", ` ${"─".repeat(width)}`),
    ...rows,
    styleText("dim", ` ${"─".repeat(width)}`),
    ` Parcels: ${kits.accepted.size} accepted, ${delivered} delivered, ${Math.max(0, underWay)} under way`,
    "",
    ...kits.story.slice(-lines).map((text) => ` ${text.slice(0, width)}`),
    "",
    styleText("dim", " 1 2 3: kill a kit, or start it again    q: end, and count"),
  ].join("\n");
}
