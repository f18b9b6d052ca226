import { type Figures, type Measurement, type MeasurementName, measurements } from "./measurements.ts";
import { labels, type SubjectName } from "./subjects.ts";
import type { Lookup, Verdict } from "./targets.ts";
import { medianOf } from "./timing.ts";

/** The report of one child: its figures, or why it has none. */
export interface Sample {
  readonly measurement: MeasurementName | "import";
  readonly subject: SubjectName;
  readonly figures?: Figures;
  readonly failure?: string;
}

const importMeasurement: Pick<Measurement, "title" | "figure" | "unit"> = {
  title: "import of the library",
  figure: "ms",
  unit: "ms",
};

/** Medians over the rounds of a run. */
export function createLookup(samples: readonly Sample[]): Lookup {
  return (measurement, subject, figure) => {
    const name = figure ?? definitionOf(measurement).figure;
    const values = samples.flatMap((sample) => {
      const value = sample.figures?.[name];
      return sample.measurement === measurement && sample.subject === subject && value !== undefined
        ? [value]
        : [];
    });
    return values.length === 0 ? undefined : medianOf(values);
  };
}

export function definitionOf(
  measurement: MeasurementName | "import",
): Pick<Measurement, "title" | "figure" | "unit"> {
  return measurement === "import" ? importMeasurement : measurements[measurement];
}

/** The cells of a run: a row for each measurement, a column for each subject; of times, the best block and the median one. */
export function toCells(
  rows: readonly (MeasurementName | "import")[],
  columns: readonly SubjectName[],
  of: Lookup,
): readonly (readonly string[])[] {
  const head = ["", ...columns.map((subject) => labels[subject])];
  const lines = rows.map((measurement) => {
    const { title, unit } = definitionOf(measurement);
    const cell = (subject: SubjectName): string => {
      const best = of(measurement, subject, "best_micros");
      const value = toText(of(measurement, subject));
      return best === undefined ? value : `${toText(best)} / ${value}`;
    };
    return [`${title}, ${unit}`, ...columns.map(cell)];
  });
  if (rows.includes("concurrent")) {
    const peaks = columns.map((subject) => toText(of("concurrent", subject, "peak_rss_mb")));
    lines.push(["1,000 sessions at once: peak RSS, MB", ...peaks]);
  }
  return [head, ...lines];
}

/** Formats a table for a terminal, or as Markdown for `bench/README.md`. */
export function toTable([head = [], ...lines]: readonly (readonly string[])[], markdown: boolean): string {
  if (markdown) {
    const toRow = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
    return [head, head.map(() => "---"), ...lines].map(toRow).join("\n");
  }
  const all = [head, ...lines];
  const widths = head.map((_, column) =>
    Math.max(...all.filter((cells) => cells.length > 1).map((cells) => (cells[column] ?? "").length)),
  );
  return all
    .map((cells) =>
      cells
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function toVerdicts(verdicts: readonly Verdict[]): string {
  return verdicts
    .map(({ target, value, limit, met }) => {
      const mark = met === undefined ? "not measured" : met ? "met" : "MISSED";
      return `${mark.padEnd(13)}${target} (${toText(value)}, limit ${toText(limit)})`;
    })
    .join("\n");
}

export function toText(value: number | undefined): string {
  if (value === undefined) return "–";
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: digits });
}
