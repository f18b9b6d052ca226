import type { ExportFormat, ExportResult } from "../protocol/guideline.ts";
import { conversionFilename, conversionTargets } from "./convert/conversion-targets.ts";
import { headingLine, renderSection } from "./convert/render-section.ts";
import type { GuidelineRecord } from "./guideline-record.ts";

/**
 * All guidelines in one file under a project heading, a sub-heading each. Read back, it gives the same
 * titles, contents and file patterns. Samples are left out unless they are all there is.
 *
 * @example
 * ```ts
 * import { exportGuidelines, readGuidelines } from "kit/guidelines";
 *
 * const { records } = readGuidelines({ path: "AGENTS.md", text: "# Rules\n\n## Style\n\nUse tabs.\n" });
 * console.log(exportGuidelines(records, "fw_c", "shop").filename);
 * ```
 */
export function exportGuidelines(
  records: readonly GuidelineRecord[],
  format: ExportFormat,
  projectName: string,
): ExportResult {
  const own = records.filter((record) => record.source_type !== "sample");
  const sections = (own.length > 0 ? own : records).map(renderSection);
  const content = [headingLine(1, `${projectName} guidelines`), ...sections].join("\n\n");
  return { filename: conversionFilename({ title: "" }, conversionTargets[format]), content: `${content}\n` };
}
