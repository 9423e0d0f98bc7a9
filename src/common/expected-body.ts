// Requests over HTTP/1.1 that announce a body and wait to be asked for it (`expect: 100-continue`). They are asked in their turn:
// while earlier requests have no answer, Node would write the 100 between the head and the body of this one's.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isTooLong } from './unread-body.ts'

type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** The listener for `checkContinue`. */
export const askInTurn =
  (handle: Handle): Handle =>
  (request, response) => {
    const begin = (): void => {
      if (!response.socket) pendingResponse(request.socket)?.once('finish', begin)
      else {
        if (!isTooLong(request)) response.writeContinue()
        handle(request, response)
      }
    }
    begin()
  }

/** The response that Node is to write next on a connection, if any. */
export const pendingResponse = (socket: Socket): ServerResponse | undefined => {
  const { _httpMessage: message } = socket as Socket & { _httpMessage?: ServerResponse | null }
  return message ?? undefined
}
