import {
  type Framework,
  frameworks,
  type Lifecycle,
  lifecycles,
  lifecycleWeights,
  type Priority,
  priorities,
  priorityWeights,
  type SpecType,
  specTypes,
} from "../../protocol/spec-block.ts";

/**
 * The class of a block: its lifecycle, priority, framework and type in one small number.
 *
 * The key of a block in the index is its class, then a running number. So a filter on any of the
 * four is a range of keys, which the full-text index can count without looking at a single block,
 * and blocks that weigh the same in a ranking lie side by side.
 */
export interface BlockClass {
  readonly lifecycle: Lifecycle;
  readonly priority: Priority;
  readonly framework: Framework;
  readonly spec_type: SpecType;
}

/** Keys per class: more blocks than an index can ever have been given. */
const classSize: number = 2 ** 32;

/** Numbers for the combinations of one value of each list. */
export interface ClassCodes {
  /** A value that is none of its list's counts as the first. */
  encode(values: readonly string[]): number;
  decode(code: number): readonly string[];
}

/** A number whose digits have as many values as the lists: a list that grows spills into no other. */
export function createClassCodes(lists: readonly (readonly string[])[]): ClassCodes {
  return {
    encode: (values) =>
      lists.reduce(
        (code, list, place) => code * list.length + Math.max(0, list.indexOf(values[place] ?? "")),
        0,
      ),
    decode(code) {
      let rest = code;
      const values: string[] = [];
      for (const list of lists.toReversed()) {
        values.unshift(list[rest % list.length] ?? "");
        rest = Math.floor(rest / list.length);
      }
      return values;
    },
  };
}

const lists = [lifecycles, priorities, frameworks, specTypes] as const;
const codes = createClassCodes(lists);

/** Changes with the values that classes are made of: codes of other ones mean something else. */
export const classFingerprint: string = lists.map((list) => list.join(",")).join(";");

export function classCodeOf({ lifecycle, priority, framework, spec_type }: BlockClass): number {
  return codes.encode([lifecycle, priority, framework, spec_type]);
}

export function classOf(code: number): BlockClass {
  const [lifecycle, priority, framework, spec_type] = codes.decode(code);
  return { lifecycle, priority, framework, spec_type } as BlockClass;
}

/** What a class contributes to a ranking: lifecycle weight times priority weight. */
export function weightOf(code: number): number {
  const { lifecycle, priority } = classOf(code);
  return lifecycleWeights[lifecycle] * priorityWeights[priority];
}

export function toKey(classCode: number, number: number): number {
  return classCode * classSize + number;
}

export function classCodeOfKey(key: number): number {
  return Math.floor(key / classSize);
}

/** First and last key of a class. */
export function keyRangeOf(classCode: number): { readonly from: number; readonly to: number } {
  return { from: classCode * classSize, to: (classCode + 1) * classSize - 1 };
}
