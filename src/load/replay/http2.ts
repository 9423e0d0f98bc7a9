// The connections of one sender over HTTP/2: many requests at once on each, by Node's own client. Otherwise like lanes.ts.

import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Answer } from './http1.ts'
import { reasonOf } from './http1.ts'
import type { Job, Lane, LaneEvents, Lanes } from './lanes.ts'
import { createCapacity, isOwnLimit } from './own-limits.ts'
import { ageOf, cacheOutcomeOf, emptyHead, type ResponseHead } from './response-head.ts'
import { addressOf, type Target, tlsOptions } from './target.ts'

// The least that RFC 9113 recommends a server to allow; a target with a lower bound says so in its settings.
const maxStreams = 100

type Open = {
  readonly session: ClientHttp2Session
  streams: number
  isLeaving: boolean
}

export const http2Lanes = <Sent extends Job>(
  target: Target,
  most: number,
  events: LaneEvents<Sent>,
): Lanes<Sent> => {
  const busy = new Map<Sent, Lane<Sent>>()
  const open: Open[] = []
  const capacity = createCapacity(most)
  let turn = 0

  const openSession = (): Open => {
    const session = connectHttp2(`${target.isTls ? 'https' : 'http'}://${target.authority}`, {
      createConnection: () =>
        target.isTls
          ? connectTls({ ...tlsOptions(target), ALPNProtocols: ['h2'] })
          : connect(addressOf(target)),
    })
    const one: Open = { session, streams: 0, isLeaving: false }
    const leave = (): void => {
      one.isLeaving = true
      const at = open.indexOf(one)
      if (at >= 0) open.splice(at, 1)
    }
    session.on('goaway', leave)
    session.on('close', leave)
    // Its streams fail with it, and their errors name the cause.
    session.on('error', (error: NodeJS.ErrnoException) => {
      leave()
      if (isOwnLimit(reasonOf(error))) capacity.limited(open.length)
    })
    open.push(one)
    return one
  }

  const streamsOf = ({ session }: Open): number =>
    Math.min(maxStreams, session.remoteSettings?.maxConcurrentStreams ?? maxStreams)

  /** The next in turn that has room. */
  const withRoom = (): Open | undefined => {
    if (capacity.allows(open.length)) return openSession()
    for (let i = 0; i < open.length; i++) {
      const one = open[turn++ % open.length]
      if (one && !one.isLeaving && !one.session.destroyed && one.streams < streamsOf(one)) return one
    }
    return undefined
  }

  const send = (one: Open, job: Sent): void => {
    const { form, key, etag } = job
    let head: ResponseHead | undefined
    let bytes = 0
    // Given by the sender, and found in an error.
    let [why, reason] = ['', '']
    const parts: Buffer[] = []
    one.streams += 1
    const stream = one.session.request({
      [constants.HTTP2_HEADER_METHOD]: form.method,
      [constants.HTTP2_HEADER_PATH]: `${target.base}${form.path}`,
      ...(form.accepts === undefined ? {} : { 'accept-encoding': form.accepts }),
      ...(key === undefined ? {} : { 'x-api-key': key }),
      ...(etag === undefined ? {} : { 'if-none-match': etag }),
    })
    busy.set(job, {
      send: () => {},
      end: given => {
        why = given
        // A stream whose session is not connected yet can't be closed, and neither can the others of that session.
        if (stream.pending) one.session.destroy()
        else stream.close(constants.NGHTTP2_CANCEL)
      },
    })
    stream.on('response', headers => {
      const found = emptyHead(Number(headers[':status']))
      const etagOf = headers.etag
      const status = headers['cache-status']
      found.etag = etagOf
      found.encoding = headers['content-encoding']
      if (status !== undefined) found.outcome = cacheOutcomeOf(String(status))
      found.ageSeconds = ageOf(headers.date, headers['last-modified'])
      head = found
    })
    stream.on('data', (part: Buffer) => {
      bytes += part.length
      if (job.keepsBody) parts.push(part)
    })
    stream.on('error', (error: NodeJS.ErrnoException) => {
      reason = reasonOfStream(error)
    })
    stream.on('close', () => {
      one.streams -= 1
      busy.delete(job)
      const isWhole =
        head !== undefined && why === '' && reason === '' && stream.rstCode === constants.NGHTTP2_NO_ERROR
      if (isWhole) {
        const answer: Answer = {
          head: head as ResponseHead,
          bytes,
          body: job.keepsBody ? Buffer.concat(parts) : undefined,
        }
        events.onAnswer(job, answer)
      } else if (head === undefined && isUnread(stream.rstCode, one) && !job.again) {
        job.again = true
        send(withRoom() ?? openSession(), job)
        return
      } else events.onFailure(job, why || reason || 'reset')
      events.onFree()
    })
    stream.end()
  }
  // A server that stops says which streams it will not read.
  const isUnread = (code: number | undefined, { isLeaving }: Open): boolean =>
    isLeaving && code === constants.NGHTTP2_REFUSED_STREAM

  return {
    busy,
    take: () => {
      const one = withRoom()
      return one && { send: job => send(one, job), end: () => {} }
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
