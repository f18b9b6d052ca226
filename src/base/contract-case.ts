/** One promise of a contract: a sentence, and what shows that it is kept. Any test runner can run it. */
export interface ContractCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}
