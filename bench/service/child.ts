/**
 * The client of one measurement of one subject, in a separate process: `node child.ts <measurement>
 * <subject> <folder>`. It starts the server; the last line of its output is the figures as JSON.
 */
import { type MeasurementName, measurements } from "./measurements.ts";
import type { SubjectName } from "./subjects.ts";

const [measurement, subject, folder] = process.argv.slice(2) as [MeasurementName, SubjectName, string];
console.log(JSON.stringify(await measurements[measurement].run(subject, folder)));
