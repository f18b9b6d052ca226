/**
 * Fails the import of an entry where kit cannot run, with one line that names the required Node. Entries that use
 * nothing of Node (`kit/client`, `kit/specs`, `kit/guidelines`) do not import this module.
 */
interface Runtime {
  readonly versions?: { readonly node?: string; readonly bun?: string };
}

const requiredMajor = 24;
const { process: node, navigator: agent } = globalThis as {
  readonly process?: Runtime;
  readonly navigator?: { readonly userAgent?: string };
};
const { versions } = node ?? {};
/** workerd has the modules of Node that kit needs there, but reports an older version. */
const isWorkerd = agent?.userAgent === "Cloudflare-Workers";

if (versions?.bun !== undefined) {
  throw new Error(
    `kit does not run on Bun (this is ${versions.bun}): run it with Node ${requiredMajor} or newer.`,
  );
}
if (!isWorkerd && Number.parseInt(versions?.node ?? "0", 10) < requiredMajor) {
  const name = versions?.node === undefined ? "no Node" : `Node ${versions.node}`;
  throw new Error(`kit needs Node ${requiredMajor} or newer, and this is ${name}: see https://nodejs.org.`);
}
