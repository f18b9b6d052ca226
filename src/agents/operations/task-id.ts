/** The id of a task: of its key, and therefore the same whenever it is asked for again. */
export async function taskIdOf(key: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  let text = "";
  for (const byte of new Uint8Array(digest, 0, 13)) text += byte.toString(16).padStart(2, "0");
  return `task_${text}`;
}
