/**
 * Milliseconds of processor time that this thread has had so far. Unlike a clock it stands still while
 * others have the processor, so a limit on it says what work costs, however busy the machine is.
 */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
