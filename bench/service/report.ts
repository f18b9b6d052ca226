import { toText } from "../runtime/report.ts";
import { medianOf } from "../runtime/timing.ts";
import { type Figures, type MeasurementName, measurements } from "./measurements.ts";
import { labels, type SubjectName } from "./subjects.ts";

/** The result of one child; without figures, the child failed. */
export interface Sample {
  readonly measurement: MeasurementName;
  readonly subject: SubjectName;
  readonly figures?: Figures;
}

export interface Verdict {
  readonly text: string;
  readonly met: boolean;
}

const asItComes: readonly SubjectName[] = ["kit", "kit-repository"];

/** Judges the targets by medians. */
export function judge(samples: readonly Sample[]): readonly Verdict[] {
  return [...judgeShares(samples), ...judgeFigures(samples)];
}

/** Compares kit's defaults with the floor: the share of its requests that kit answers in the same processor time. */
function judgeShares(samples: readonly Sample[]): readonly Verdict[] {
  return (["prompts", "prompts_new"] as const).flatMap((row) =>
    asItComes.flatMap((subject): readonly Verdict[] => {
      const floor = median(samples, [row, "floor"], "cpu_micros");
      const kit = median(samples, [row, subject], "cpu_micros");
      if (floor === undefined || kit === undefined) return [];
      const atLeast = row === "prompts" ? 0.5 : 0.35;
      const share = floor / kit;
      const text = `${measurements[row].title}, ${labels[subject]}: ${toText(share)} of the floor (at least ${atLeast})`;
      return [{ text, met: share >= atLeast }];
    }),
  );
}

function judgeFigures(samples: readonly Sample[]): readonly Verdict[] {
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

/** Returns a row for each figure and a column for each subject, and kit's ratio to the floor. */
export function toCells({
  rows,
  subjects,
  samples,
}: {
  readonly rows: readonly MeasurementName[];
  readonly subjects: readonly SubjectName[];
  readonly samples: readonly Sample[];
}): readonly (readonly string[])[] {
  const head = ["", ...subjects.map((subject) => labels[subject]), "kit to the floor"];
  const lines = rows.flatMap((row) =>
    measurements[row].figures.map(({ name, title }) => {
      const cells = subjects.map((subject) => median(samples, [row, subject], name));
      const kit = median(samples, [row, "kit"], name);
      const floor = median(samples, [row, "floor"], name);
      const ratio = kit === undefined || floor === undefined ? "–" : `${toText(kit / floor)}×`;
      return [`${measurements[row].title}: ${title}`, ...cells.map(toText), ratio];
    }),
  );
  return [head, ...lines];
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
