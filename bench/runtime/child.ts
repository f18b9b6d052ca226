/**
 * Makes one measurement of one subject in a separate process: `node child.ts <measurement> <subject>
 * <folder>`. The last line of its output is the figures as JSON.
 */
import { type MeasurementName, measurements } from "./measurements.ts";
import { loadSubject, type SubjectName } from "./subjects.ts";

const [measurement, subject, folder] = process.argv.slice(2) as [MeasurementName, SubjectName, string];
const figures = await measurements[measurement].run(await loadSubject(subject), folder);
console.log(JSON.stringify(figures));
// Some libraries keep the process alive after their work is done.
process.exit(0);
