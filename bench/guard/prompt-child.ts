/** Measures the processor time of one server for a prompt, in a separate folder: `node prompt-child.ts <subject> <folder>`; prints JSON. */
import { measureKnown } from "../service/measure-prompts.ts";
import type { SubjectName } from "../service/subjects.ts";

const [subject, folder] = process.argv.slice(2) as [SubjectName, string];
console.log(JSON.stringify(await measureKnown(subject, folder, { warmUp: 3_000, measured: 3_000 })));
