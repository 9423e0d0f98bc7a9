// What comes on a connection of HTTP/1.1 behind its last request. Node parses all of a read of 64 KiB before anything can stop it,
// 2,500 of the smallest requests: all behind the last one share one request and one response, which nobody answers.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// An import would load Node's client for fetch too, a twentieth of a start.
const http = process.getBuiltinModule('node:http')

const rest: unique symbol = Symbol('rest')
type Shared = { request?: IncomingMessage; response?: ServerResponse }
type Given = ConstructorParameters<typeof http.ServerResponse<IncomingMessage>>

const sharedOn = (socket: Socket): Shared | undefined => (socket as { [rest]?: Shared })[rest]

// Node calls them with `new`, and takes what they return.
function Request(socket: Socket): IncomingMessage {
  const shared = sharedOn(socket)
  if (!shared) return new http.IncomingMessage(socket)
  shared.request ??= new http.IncomingMessage(socket)
  return shared.request
}
function Response(...given: Given): ServerResponse {
  const shared = sharedOn(given[0].socket)
  if (!shared) return new http.ServerResponse(...given)
  shared.response ??= new Unanswered(...given)
  return shared.response
}

class Unanswered extends http.ServerResponse<IncomingMessage> {
  // Node adds listeners for each request that it parses.
  override on(): this {
    return this
  }
}

/** The classes of a server that ends connections with `endAtLast`. */
export const requestClasses = {
  IncomingMessage: Request as unknown as typeof http.IncomingMessage,
  ServerResponse: Response as unknown as typeof http.ServerResponse<IncomingMessage>,
}

/** Nothing that comes on a connection from now on is a request of its own. The server's listeners are called all the same. */
export const endAtLast = (socket: Socket): void => {
  ;(socket as { [rest]?: Shared })[rest] ??= {}
}

/** Whether a request came behind the last one of its connection. */
export const isBehindLast = ({ socket }: IncomingMessage): boolean => sharedOn(socket) !== undefined
