// A client of one server whose commands of one turn of the event loop leave in one write. ioredis's own pipelines do that too, for
// twice the processor time of each command, and their objects live long enough to be collected as old ones.

import { Redis } from 'ioredis'

export class CorkedRedis extends Redis {
  override sendCommand(...given: Parameters<Redis['sendCommand']>): unknown {
    const { stream } = this
    // Before there is a connection there is no stream.
    if (stream?.writable && stream.writableCorked === 0) {
      stream.cork()
      setImmediate(() => stream.uncork())
    }
    return super.sendCommand(...given)
  }
}
