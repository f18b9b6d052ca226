/** One thing that the doctor looked at. */
export interface Check {
  readonly name: string;
  readonly status: "ok" | "warning" | "error";
  /** What is. */
  readonly message: string;
  /** What to do about it, in one line or several; for everything that is not ok. */
  readonly hint?: string;
}
