/**
 * Returns the processor time that this thread has used so far, in ms. Unlike a clock it stands still while
 * other processes run, so a limit on it measures the cost of work however busy the machine is.
 */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
