// The HTTP/2 connections of one sender: many requests at once on each, with Node's client.

import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { createCapacity, isGeneratorError, reasonOf } from './generator-errors.ts'
import type { ConnectionPool, OutgoingRequest, PoolEvents } from './http1.ts'
import { type CacheFacts, cacheFactsIn } from './response-head.ts'
import { socketTo, type Target } from './target.ts'

// The minimum that RFC 9113 recommends; a target with a lower limit sends it in its settings.
const maxStreams = 100

type Open = { readonly session: ClientHttp2Session; streams: number; isLeaving: boolean }

export const http2Pool = <Sent extends OutgoingRequest>(
  target: Target,
  most: number,
  events: PoolEvents<Sent>,
): ConnectionPool<Sent> => {
  const busy = new Map<Sent, (reason: string) => void>()
  const open: Open[] = []
  const capacity = createCapacity(most)
  let turn = 0

  const openSession = (): Open => {
    const session = connect(`${target.isTls ? 'https' : 'http'}://${target.authority}`, {
      createConnection: () => socketTo(target, 'h2'),
    })
    const one: Open = { session, streams: 0, isLeaving: false }
    const leave = (): void => {
      one.isLeaving = true
      const at = open.indexOf(one)
      if (at >= 0) open.splice(at, 1)
    }
    session.on('goaway', leave)
    session.on('close', leave)
    // The streams of the session fail too, with the cause.
    session.on('error', (error: NodeJS.ErrnoException) => {
      leave()
      if (isGeneratorError(reasonOf(error))) capacity.limited(open.length)
    })
    open.push(one)
    return one
  }

  const streamsOf = ({ session }: Open): number =>
    Math.min(maxStreams, session.remoteSettings?.maxConcurrentStreams ?? maxStreams)

  const withRoom = (): Open | undefined => {
    if (capacity.allows(open.length)) return openSession()
    for (let i = 0; i < open.length; i++) {
      const one = open[turn++ % open.length]
      if (one && !one.session.destroyed && one.streams < streamsOf(one)) return one
    }
    return undefined
  }

  const send = (one: Open, request: Sent): void => {
    const { form, key, etag } = request
    let found: { readonly status: number; readonly head: CacheFacts } | undefined
    let bytes = 0
    let reason = ''
    const parts: Buffer[] = []
    one.streams += 1
    const stream = one.session.request({
      [constants.HTTP2_HEADER_METHOD]: form.method,
      [constants.HTTP2_HEADER_PATH]: `${target.base}${form.path}`,
      ...(form.accepts === undefined ? {} : { 'accept-encoding': form.accepts }),
      ...(key === undefined ? {} : { 'x-api-key': key }),
      ...(etag === undefined ? {} : { 'if-none-match': etag }),
    })
    busy.set(request, given => {
      reason = given
      // A stream can't be closed before its session is connected.
      if (stream.pending) one.session.destroy()
      else stream.close(constants.NGHTTP2_CANCEL)
    })
    stream.on('response', headers => {
      found = { status: Number(headers[':status']), head: cacheFactsIn(headers) }
    })
    stream.on('data', (part: Buffer) => {
      bytes += part.length
      if (request.keepsBody) parts.push(part)
    })
    stream.on('error', (error: NodeJS.ErrnoException) => {
      reason ||= reasonOfStream(error)
    })
    stream.on('close', () => {
      one.streams -= 1
      busy.delete(request)
      if (found && reason === '' && stream.rstCode === constants.NGHTTP2_NO_ERROR)
        events.onAnswer(request, {
          ...found,
          bytes,
          body: request.keepsBody ? Buffer.concat(parts) : undefined,
        })
      // A server that shuts down refuses the streams that it did not read.
      else if (
        !found &&
        one.isLeaving &&
        stream.rstCode === constants.NGHTTP2_REFUSED_STREAM &&
        !request.again
      ) {
        request.again = true
        send(withRoom() ?? openSession(), request)
      } else events.onFailure(request, reason || 'reset')
    })
    stream.end()
  }

  return {
    busy,
    take: () => {
      const one = withRoom()
      return one && (request => send(one, request))
    },
    close: () => {
      for (const { session } of [...open]) session.destroy()
    },
  }
}

const reasonOfStream = (error: NodeJS.ErrnoException): string => {
  const cause = error.cause instanceof Error ? (error.cause as NodeJS.ErrnoException) : error
  return cause.code?.startsWith('ERR_HTTP2') ? 'reset' : reasonOf(cause)
}
