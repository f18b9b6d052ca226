import { toText } from "../runtime/report.ts";
import { medianOf } from "../runtime/timing.ts";
import { type Figures, type MeasurementName, measurements } from "./measurements.ts";
import { labels, type SubjectName } from "./subjects.ts";

/** What one child measured; without figures, it failed. */
export interface Sample {
  readonly measurement: MeasurementName;
  readonly subject: SubjectName;
  readonly figures?: Figures;
}

export interface Verdict {
  readonly text: string;
  readonly met: boolean;
}

/** The targets of what was measured, judged by kit's medians. */
export function judge(samples: readonly Sample[]): readonly Verdict[] {
  return Object.entries(measurements).flatMap(([name, { title, figures }]) =>
    figures.flatMap((figure): readonly Verdict[] => {
      const { atMost, atLeast } = figure;
      const value = median(samples, [name as MeasurementName, "kit"], figure.name);
      if (value === undefined || (atMost ?? atLeast) === undefined) return [];
      const met =
        value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY);
      const limit = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
      return [{ text: `${title}: ${figure.title} ${toText(value)} (${limit})`, met }];
    }),
  );
}

/** A line for each figure, a column for each subject, and how many times the floor kit takes or gives. */
export function toTable({
  rows,
  subjects,
  samples,
}: {
  readonly rows: readonly MeasurementName[];
  readonly subjects: readonly SubjectName[];
  readonly samples: readonly Sample[];
}): string {
  const head = ["", ...subjects.map((subject) => labels[subject]), "kit to bare Hono"];
  const lines = rows.flatMap((row) => [
    [measurements[row].title],
    ...measurements[row].figures.map(({ name, title }) => {
      const cells = subjects.map((subject) => median(samples, [row, subject], name));
      const kit = median(samples, [row, "kit"], name);
      const floor = median(samples, [row, "floor"], name);
      const ratio = kit === undefined || floor === undefined ? "" : `${toText(kit / floor)}×`;
      return [`  ${title}`, ...cells.map(toText), ratio];
    }),
  ]);
  const widths = head.map((_, column) =>
    Math.max(
      ...[head, ...lines].filter((cells) => cells.length > 1).map((cells) => cells[column]?.length ?? 0),
    ),
  );
  return [head, ...lines]
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

function median(
  samples: readonly Sample[],
  [measurement, subject]: readonly [MeasurementName, SubjectName],
  figure: string,
): number | undefined {
  const values = samples.flatMap((sample) => {
    const value = sample.figures?.[figure];
    return sample.measurement === measurement && sample.subject === subject && value !== undefined
      ? [value]
      : [];
  });
  return values.length === 0 ? undefined : medianOf(values);
}
