/** The most bytes of an id in a path of the server. */
const longestId = 128;

/** Says why a text cannot be the id of a conversation, and what to do; `undefined` if it can. */
export function findIdFault(text: string): string | undefined {
  if (text === "") return "Write an id, or open a new conversation without one.";
  if (/\s/.test(text) && /[?!.]$|\s\S+\s/.test(text))
    return "This reads like a message. An id is a short name, such as ticket-1043; open a new conversation and write the message there.";
  if (new TextEncoder().encode(text).length > longestId)
    return `An id has at most ${longestId} characters, fewer with special letters.`;
  if (/[/\\\p{Cc}]/u.test(text)) return "An id cannot contain slashes or line breaks.";
  if (!text.isWellFormed() || /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/.test(text))
    return "An id cannot contain invisible marks.";
  if (text === "." || text === "..") return "An id cannot be only dots.";
  return undefined;
}
