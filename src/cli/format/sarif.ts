import { version } from "../../base/version.ts";
import type { Diagnostic, DiagnosticRule } from "../../protocol/diagnostic.ts";
import { diagnosticRules } from "../../protocol/enums.ts";

/**
 * Diagnostics as a SARIF 2.1.0 log (OASIS, "Static Analysis Results Interchange Format"), as code
 * scanning services read it. Paths are relative to the root of the repository, percent-encoded.
 */
export function toSarif(diagnostics: readonly Diagnostic[]): object {
  const rules = diagnosticRules.filter((rule) => diagnostics.some((diagnostic) => diagnostic.rule === rule));
  return {
    $schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "kit",
            version,
            rules: rules.map((id) => ({ id, shortDescription: { text: ruleDescriptions[id] } })),
          },
        },
        columnKind: "utf16CodeUnits",
        results: diagnostics.map((diagnostic) => ({
          ruleId: diagnostic.rule,
          ruleIndex: rules.indexOf(diagnostic.rule),
          level: diagnostic.severity,
          message: { text: diagnostic.message },
          locations: [
            {
              physicalLocation: {
                artifactLocation: {
                  uri: diagnostic.path.toWellFormed().split("/").map(encodeURIComponent).join("/"),
                  uriBaseId: "%SRCROOT%",
                },
                region: { startLine: diagnostic.line ?? 1 },
              },
            },
          ],
          ...toProperties(diagnostic),
        })),
      },
    ],
  };
}

function toProperties({ code, id, field }: Diagnostic): object {
  if (code === undefined && id === undefined && field === undefined) return {};
  return {
    properties: {
      ...(code === undefined ? {} : { code }),
      ...(id === undefined ? {} : { id }),
      ...(field === undefined ? {} : { field }),
    },
  };
}

const ruleDescriptions: Readonly<Record<DiagnosticRule, string>> = {
  "required-field": "A required field is missing or empty.",
  enum: "A field holds none of the values it may hold.",
  timestamp: "A date is not a full ISO 8601 date or date-time.",
  "summary-length": "A summary is longer than 500 characters.",
  "duplicate-id": "Two blocks declare the same id.",
  "unreadable-file": "A file cannot be read.",
  encoding: "A file is not valid UTF-8.",
  "front-matter": "Front matter cannot be read as it stands.",
  structure: "A document lacks the structure of its format.",
  "dangling-reference": "A reference names something that is not there.",
  "glob-no-match": "A glob matches no file of the project.",
  "duplicate-guideline": "Two sources say the same.",
  contradiction: "Two sources say different things under one heading.",
  shadowed: "A rule never applies because another one takes its place.",
  import: "An import cannot be followed.",
  limit: "A file goes beyond a limit and was read in part.",
};
