// Commands to a server of Redis: those of one turn of the event loop leave in one write. ioredis's own pipelines do that too, for
// twice the processor time of each command, and their objects live long enough to be collected as old ones.

import type { Redis } from 'ioredis'

/** The same client, which holds its socket back until the end of the turn. */
export const withOneWrite = (redis: Redis): Redis => {
  const send = redis.sendCommand.bind(redis)
  redis.sendCommand = (...given) => {
    const { stream } = redis
    // Before there is a connection there is no stream.
    if (stream?.writable && stream.writableCorked === 0) {
      stream.cork()
      setImmediate(() => stream.uncork())
    }
    return send(...given)
  }
  return redis
}
