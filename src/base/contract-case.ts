/** One promise of a contract as a test case, for any test runner: a sentence, and a function that throws if the promise is broken. */
export interface ContractCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}
