/**
 * Ends the import of an entry at once where it cannot run, with one line that says what it needs, instead of a failure
 * deep inside. Entries that need nothing of Node (`kit/client`, `kit/specs`, `kit/guidelines`) do without.
 */
interface Runtime {
  readonly versions?: { readonly node?: string; readonly bun?: string };
}

const requiredMajor = 24;
const { versions } = (globalThis as { readonly process?: Runtime }).process ?? {};

if (versions?.bun !== undefined) {
  throw new Error(
    `kit does not run on Bun (this is ${versions.bun}): run it with Node ${requiredMajor} or newer.`,
  );
}
if (Number.parseInt(versions?.node ?? "0", 10) < requiredMajor) {
  const found = versions?.node === undefined ? "no Node" : `Node ${versions.node}`;
  throw new Error(`kit needs Node ${requiredMajor} or newer, and this is ${found}: see https://nodejs.org.`);
}
