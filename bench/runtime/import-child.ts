/**
 * Times the import of a subject's entry in a fresh process: `node
 * import-child.ts <subject>`; with `packages` as second argument, lists the packages that it loaded.
 */
import { registerHooks } from "node:module";
import { loadPeer } from "./peers/install-peer.ts";
import { type PeerName, peers } from "./peers/manifest.ts";

const [subject, wish] = process.argv.slice(2) as ["kit" | PeerName, "packages" | undefined];
const packages = new Set<string>();

if (wish === "packages") {
  registerHooks({
    load(url, context, next) {
      const inside = url.split("/node_modules/").at(-1) ?? "";
      if (url.includes("/node_modules/")) {
        const [scope, name] = inside.split("/");
        packages.add(scope?.startsWith("@") ? `${scope}/${name}` : `${scope}`);
      }
      return next(url, context);
    },
  });
}

const started = performance.now();
if (subject === "kit") await import(new URL("../../dist/index.js", import.meta.url).href);
else await loadPeer(subject, peers[subject].entry);
const ms = performance.now() - started;

console.log(JSON.stringify(wish === "packages" ? [...packages].sort() : { ms }));
process.exit(0);
