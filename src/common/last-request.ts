// What comes on a connection of HTTP/1.1 behind its last request. Node parses all of a read of 64 KiB, 2,500 of the smallest requests,
// although the socket was paused or destroyed at the first of them: some milliseconds, and megabytes until the socket is closed.

import type { Socket } from 'node:net'

/** What Node calls with each head; it is not documented. */
type Parsed = { readonly parser?: { onIncoming: () => number } | null }

// For llhttp what follows is of another protocol: it parses no further, and finds no fault there.
const parseNoFurther = () => 2

/** Makes no request of what comes on a connection from now on. Without Node's field all is parsed still, at the price above. */
export const endAtLast = (socket: Socket): void => {
  const { parser } = socket as Parsed
  if (parser) parser.onIncoming = parseNoFurther
}
