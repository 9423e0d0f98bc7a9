// The open connections of the API, and how many without a good key each address has.

import type { Socket } from 'node:net'
import { emptyKeyMemo } from '../../keys/authentication.ts'
import { type IsTrusted, networkOf } from './client-address.ts'
import { type Carrier, type Connection, mark, notOpen } from './connection.ts'

// How long a flooding connection still counts after its end: its client would be back immediately, with thousands of requests a read.
const countsOnForMs = 60_000

type AfterAnswer = Connection['afterAnswer']

export class OpenConnections {
  /** No Set: the tables that it has outgrown keep what was in them until old objects are collected. */
  readonly all: Connection[] = []
  /** How many have not shown a good key. */
  unauthenticated = 0
  /** How many without a good key an address may have. */
  maxPerAddress: number
  readonly #isTrusted: IsTrusted
  readonly #onClose: (connection: Connection) => void
  readonly #byAddress = new Map<string, number>()
  // Under TLS the accepted socket and the one with requests are two objects with one peer. Its connection is let go for the same reason.
  readonly #byPeer = new Map<string, { connection: Connection | undefined }>()
  #tracked = 0

  /**
   * @param isTrusted addresses that are not counted: those of proxies, which bring the requests of many
   * @param onClose called with each connection that is closed
   */
  constructor(maxPerAddress: number, isTrusted: IsTrusted, onClose: (connection: Connection) => void) {
    this.maxPerAddress = maxPerAddress
    this.#isTrusted = isTrusted
    this.#onClose = onClose
  }

  /** Follows an accepted socket until it is closed; false where its address has too many. */
  accept(socket: Socket & Carrier, isTls: boolean, afterAnswer: AfterAnswer): boolean {
    const { remoteAddress } = socket
    const address =
      remoteAddress === undefined || this.#isTrusted(remoteAddress) ? undefined : networkOf(remoteAddress)
    if (address !== undefined && !this.#count(address)) return false
    const connection = this.track(socket, address, afterAnswer)
    socket[mark] = connection
    connection.place = this.all.length
    this.all.push(connection)
    this.unauthenticated += 1
    const peer = isTls ? peerOf(socket) : ''
    const ofPeer: { connection: Connection | undefined } = { connection }
    if (isTls) this.#byPeer.set(peer, ofPeer)
    socket.once('close', () => {
      this.#onClose(connection)
      this.#closed(connection)
      ofPeer.connection = undefined
      if (this.#byPeer.get(peer) === ofPeer) this.#byPeer.delete(peer)
    })
    return true
  }

  /** A connection that is not among the open ones. @param address what it counts under */
  track(socket: Socket, address: string | undefined, afterAnswer: AfterAnswer): Connection {
    this.#tracked += 1
    return {
      number: this.#tracked,
      place: notOpen,
      socket,
      session: undefined,
      peer: undefined,
      keyMemo: emptyKeyMemo(),
      address,
      isAuthenticated: false,
      isEnding: false,
      requestsCame: 0,
      requests: 0,
      lists: 0,
      waiting: undefined,
      refusals: 0,
      isFlooding: false,
      unreadBody: undefined,
      paused: undefined,
      whenAnswered: undefined,
      afterAnswer,
    }
  }

  /** The accepted connection below the socket of a TLS session. */
  below(socket: Socket): Connection | undefined {
    return this.#byPeer.get(peerOf(socket))?.connection
  }

  authenticated(connection: Connection): void {
    const { address } = connection
    connection.isAuthenticated = true
    connection.address = undefined
    if (address !== undefined) this.#release(address)
    if (connection.place !== notOpen) this.unauthenticated -= 1
  }

  close(mayGo: (connection: Connection) => boolean): void {
    for (const connection of this.all) if (mayGo(connection)) connection.socket.destroy()
  }

  #closed(connection: Connection): void {
    const { address, isFlooding, isAuthenticated } = connection
    const last = this.all.pop()
    if (last && last !== connection) {
      this.all[connection.place] = last
      last.place = connection.place
    }
    connection.place = notOpen
    if (!isAuthenticated) this.unauthenticated -= 1
    if (address === undefined) return
    connection.address = undefined
    // Only the address: the connection holds all requests of its last read.
    if (isFlooding) setTimeout(() => this.#release(address), countsOnForMs).unref()
    else this.#release(address)
  }

  #count(address: string): boolean {
    const before = this.#byAddress.get(address) ?? 0
    if (before >= this.maxPerAddress) return false
    this.#byAddress.set(address, before + 1)
    return true
  }

  #release(address: string): void {
    const left = (this.#byAddress.get(address) ?? 1) - 1
    if (left === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, left)
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
