// The connections of an ops or health listener, and which have to go when there are too many: first those whose request is
// not whole or that rest, then those whose answer nobody takes, the oldest first. Other requests hold at most the places that
// there are, so that probes are answered beside them.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isProbePath } from './probes.ts'
import { Refusal } from './refusal.ts'

type Places = {
  /** Follows a request until it is answered; the refusal of one for which no place is left. */
  requestCame(request: IncomingMessage, response: ServerResponse): Refusal | undefined
  /** Calls back once all requests of a connection are answered. */
  whenAnswered(socket: Socket, next: () => void): void
  closeAll(): void
}

type Place = {
  readonly socket: Socket
  /** How often there had been too many by then. */
  readonly cameIn: number
  /** Requests that are not answered yet. */
  requests: number
  last: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined
  next: (() => void) | undefined
}

// A connection may be about to send its request. So those beyond the bound are heard for a moment, so many of them at once.
const graceMs = 100
const maxBeyond = 256

/** @param onRefused a connection was closed, or a request refused, because there are too many */
export const createPlaces = (server: Server, maxConnections: number, onRefused: () => void): Places => {
  const most = maxConnections
  let isTrimming = false
  let round = 0
  // The oldest first.
  const places = new Map<Socket, Place>()

  const close = (socket: Socket): void => {
    onRefused()
    places.delete(socket)
    socket.destroy()
  }
  const oldest = (mayGo: (place: Place) => boolean, newcomer?: Socket): Socket | undefined => {
    for (const [socket, place] of places) if (socket !== newcomer && mayGo(place)) return socket
    return undefined
  }
  const oldestIdle = (newcomer?: Socket) => oldest(isIdle, newcomer) ?? oldest(isUntaken, newcomer)
  const trim = (): void => {
    isTrimming = false
    // By rounds and not by time: since the one before, the event loop has read what there was.
    const next = () => oldest(place => isIdle(place) && place.cameIn < round) ?? oldest(isUntaken)
    for (let socket = next(); socket && places.size > most; socket = next()) close(socket)
    round += 1
    trimLater()
  }
  const trimLater = (): void => {
    if (places.size <= most || isTrimming) return
    isTrimming = true
    setTimeout(trim, graceMs).unref()
  }
  const makeRoom = (newcomer: Socket): void => {
    if (places.size > most + maxBeyond) close(oldestIdle(newcomer) ?? newcomer)
    trimLater()
  }

  server.on('connection', (socket: Socket) => {
    places.set(socket, { socket, cameIn: round, requests: 0, last: undefined, next: undefined })
    socket.once('close', () => places.delete(socket))
    makeRoom(socket)
  })

  return {
    requestCame: (request, response) => {
      const { socket, url = '' } = request
      const place = places.get(socket)
      if (!place) return undefined
      place.requests += 1
      place.last = { request, response }
      response.once('close', () => {
        place.requests -= 1
        if (place.requests === 0) place.next?.()
      })
      if (places.size <= most || isProbePath(url.split('?', 1)[0] ?? '')) return undefined
      let busy = 0
      for (const each of places.values()) if (!isIdle(each)) busy += 1
      if (busy < most) return undefined
      return new Refusal(503, 'connections', `${most} connections are busy; try again in a moment`)
    },
    whenAnswered: (socket, next) => {
      const place = places.get(socket)
      if (!place) return
      place.next = () => {
        place.next = undefined
        if (socket.writable) next()
      }
      if (place.requests === 0) place.next()
    },
    closeAll: () => {
      for (const socket of places.keys()) socket.destroy()
    },
  }
}

const isIdle = ({ requests, last }: Place): boolean => requests === 0 || last?.request.complete === false
const isUntaken = ({ socket }: Place): boolean => socket.writableLength > 0
