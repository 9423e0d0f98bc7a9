// Keeps what Node's cluster drops when a worker is killed: a connection that the worker was sent and had not taken yet, and the
// port when no other worker listens. Both are kept until another worker takes them; pool.ts ends workers. Relies on undocumented
// behaviour of Node, which test/workers/pool.test.ts checks:
// - a connection goes to a worker by `process.send({ cmd: 'NODE_CLUSTER', act: 'newconn', seq }, handle)`;
// - an `internalMessage` with `ack: seq` answers it, and with `accepted: false` the connection goes to another worker;
// - right after the fork the `disconnect` listeners of the process are those that forget the worker and close its port;
// - `process.connected` is set to false at the end of the channel, and is what cluster asks at the exit.

import type { Worker } from 'node:cluster'

/** The messages of Node's cluster that matter here. */
type ClusterMessage = {
  readonly cmd?: string
  /** `newconn` hands a connection over. */
  readonly act?: string
  readonly seq?: number
  /** The `seq` of the message that this one answers. */
  readonly ack?: number
}

type Handle = { close(): void }

export type KeptConnections = {
  /** Whether the worker takes nothing more: its channel has ended, which is known before its exit is. */
  isGone(): boolean
  /** Another worker listens, or none will: what is kept goes there. */
  release(): void
  /** Nobody will listen for long: what is kept is closed, the port too. */
  drop(): void
}

/**
 * Called right after the fork.
 * @param mustKeep asked when the worker is gone: whether nobody else listens, but somebody will
 */
export const keepConnections = ({ process }: Worker, mustKeep: () => boolean): KeptConnections => {
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  const forget = process.listeners('disconnect') as (() => void)[]
  const untaken = new Map<number, Handle | undefined>()
  let isConnected = process.connected
  let isGone = false
  let isReleased = false
  /** Cluster may learn of the end. False where it has, or where there is none yet. */
  const forgetOnce = (): boolean => {
    if (!isGone || isReleased) return false
    isReleased = true
    for (const listener of forget) listener()
    return true
  }
  const release = (): void => {
    if (!forgetOnce()) return
    // A worker that refuses a connection says so; then it goes to another one. A dead one refuses all.
    for (const seq of untaken.keys())
      process.emit(
        'internalMessage' as 'message',
        { cmd: 'NODE_CLUSTER', ack: seq, accepted: false },
        undefined,
      )
  }
  const drop = (): void => {
    if (!forgetOnce()) return
    for (const handle of untaken.values()) handle?.close()
    untaken.clear()
  }

  process.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.cmd === 'NODE_CLUSTER' && message.act === 'newconn' && message.seq !== undefined)
      untaken.set(message.seq, rest[0] as Handle | undefined)
    return isConnected && send(message, ...rest)
  }
  process.on('internalMessage' as 'message', message => {
    const { ack } = message as ClusterMessage
    if (ack !== undefined) untaken.delete(ack)
  })
  // Set to false at the end of the channel, when all that the worker sent is read. The event of it does not come while a handed
  // connection has no answer. To cluster the worker stays connected until the release: it closes the port with the last one.
  Object.defineProperty(process, 'connected', {
    get: () => isConnected || !isReleased,
    set: (is: boolean) => {
      isConnected = is
      if (is || isGone) return
      isGone = true
      setImmediate(() => {
        if (!mustKeep()) release()
      })
    },
  })
  process.removeAllListeners('disconnect')
  return { isGone: () => isGone, release, drop }
}
