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

export function classCodeOf(block: BlockClass): number {
  return (
    (at(lifecycles, block.lifecycle) << 7) |
    (at(priorities, block.priority) << 5) |
    (at(frameworks, block.framework) << 2) |
    at(specTypes, block.spec_type)
  );
}

/** A value that is none of the record's (only an adapter of the user's own can give one) is the first. */
function at<Value>(values: readonly Value[], value: Value): number {
  return Math.max(0, values.indexOf(value));
}

export function classOf(code: number): BlockClass {
  return {
    lifecycle: lifecycles[code >> 7] ?? "active",
    priority: priorities[(code >> 5) & 3] ?? "medium",
    framework: frameworks[(code >> 2) & 7] ?? "custom",
    spec_type: specTypes[code & 3] ?? "requirement",
  };
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
