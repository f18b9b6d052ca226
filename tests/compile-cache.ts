import { tmpdir } from "node:os";
import { join } from "node:path";

// Processes that tests start compile kit once, and not each anew: half of the time that one takes to start. Not the
// process of the tests: it began without the cache, under which Node refuses some agents' files (resting-work.test.ts).
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "node-compile-cache");
