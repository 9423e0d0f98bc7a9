// A server in the provider's place: forwards calls to the real provider process and damages its responses as the current
// case says. Records for each call the requested cells, the right response and what was sent.

import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { startHostileProvider as startServer } from '../../test/support/hostile-provider.ts'
import type { ProviderProcess } from '../../test/support/provider.ts'
import { scopeOf } from '../../test/support/teardown.ts'
import type { Element } from '../oracle/provider-body.ts'
import type { Point } from './fresh-cells.ts'

/** `right`: an element for each point. `text`: of the sent body, if all of it was sent. */
export type Call = {
  readonly points: readonly Point[]
  readonly right: readonly Element[]
  readonly text: string | undefined
}

/** The damage for calls with the chosen points: the bytes to send, and the text in them where it arrives. */
type Spoiling = {
  spoils(point: Point): boolean
  spoil(right: string): { readonly text: string | undefined; readonly pieces: readonly Buffer[] }
}

export const isSame = (one: Point, other: Point): boolean =>
  one.latitude === other.latitude && one.longitude === other.longitude

export type HostileProvider = Awaited<ReturnType<typeof startHostileProvider>>
export const startHostileProvider = async (provider: ProviderProcess) => {
  const opened = new AsyncDisposableStack()
  let spoiling: Spoiling | null = null
  let held: { point: Point; until: Promise<void>; arrived: () => void } | undefined
  const calls: Call[] = []

  const server = await startServer(scopeOf(opened), provider.url, {
    provider: async ({ request, response, socket, honest }) => {
      const right = await honest()
      const points = pointsOf(request.url ?? '')
      if (held && points.some(point => held && isSame(point, held.point))) {
        held.arrived()
        await held.until
      }
      if (!spoiling || !points.some(spoiling.spoils)) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(right)
        return
      }
      const { text, pieces } = spoiling.spoil(right)
      const parsed = JSON.parse(right) as Element | Element[]
      calls.push({ points, right: Array.isArray(parsed) ? parsed : [parsed], text })
      await sendPieces(socket, pieces)
    },
  })
  return {
    url: server.url('provider'),
    /** Sets the damage for the following calls; null for none. */
    spoilWith: (next: Spoiling | null): void => {
      spoiling = next
      held = undefined
    },
    /** Delays the response for this point until a promise is fulfilled; resolves when the request arrives. */
    hold: (point: Point, until: Promise<void>): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = { point, until, arrived: resolve }
      return promise
    },
    /** The calls since the last `takeCalls`. */
    takeCalls: (): Call[] => calls.splice(0),
    close: () => opened.disposeAsync(),
  }
}

/** Writes to the socket directly and closes it: this target does not test kept connections. */
const sendPieces = async (socket: Socket, pieces: readonly Buffer[]): Promise<void> => {
  if (pieces.length === 0) socket.resetAndDestroy()
  for (const [i, piece] of pieces.entries()) {
    if (i > 1) await pause(1)
    if (!socket.writable) return
    socket.write(piece)
  }
  socket.end()
}

const pointsOf = (url: string): Point[] => {
  const query = new URLSearchParams(url.slice(url.indexOf('?')))
  const numbersOf = (name: string): number[] => (query.get(name) ?? '').split(',').map(Number)
  const longitudes = numbersOf('longitude')
  return numbersOf('latitude').map((latitude, i) => ({ latitude, longitude: longitudes[i] ?? Number.NaN }))
}
