// Channels of Redis, heard over one connection of their own: a connection that listens can do nothing else. It is made
// when someone first listens and comes back by itself.

import type { Redis } from 'ioredis'

export type Hearing = {
  message(text: string): void
  /** The connection was lost: nothing is heard for now. */
  lost(): void
  /** It listens again; what was said meanwhile was missed. */
  again(): void
}

export type RedisListening = {
  /** The answer ends the listening. */
  listen(channel: string, hearing: Hearing): () => void
  close(): void
}

/** @param open makes the connection, which connects by itself and does not subscribe again by itself */
export const createRedisListening = (open: () => Redis): RedisListening => {
  const hearings = new Map<string, Set<Hearing>>()
  let connection: Redis | undefined

  const all = () => [...hearings.values()].flatMap(set => [...set])
  const subscribe = async (channels: readonly string[]): Promise<void> => {
    await connection?.subscribe(...channels)
    for (const channel of channels) for (const hearing of hearings.get(channel) ?? []) hearing.again()
  }
  const connect = (): Redis => {
    const made = open()
    made.on('message', (channel: string, text: string) => {
      for (const hearing of hearings.get(channel) ?? []) hearing.message(text)
    })
    made.on('ready', () => void subscribe([...hearings.keys()]).catch(() => {}))
    made.on('close', () => {
      for (const hearing of all()) hearing.lost()
    })
    // Told by the connection that commands go over.
    made.on('error', () => {})
    return made
  }

  return {
    listen: (channel, hearing) => {
      const set = hearings.get(channel) ?? new Set()
      hearings.set(channel, set.add(hearing))
      if (!connection) connection = connect()
      else if (set.size === 1 && connection.status === 'ready') void subscribe([channel]).catch(() => {})
      return () => set.delete(hearing)
    },
    close: () => connection?.disconnect(),
  }
}
