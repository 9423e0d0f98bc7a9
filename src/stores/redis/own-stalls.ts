// Timeouts of Redis that a stall of this process does not use up. After one (a cold start, a collection of garbage) timers run before
// sockets are read: commands that were not even written yet, and replies that lay there, counted as silence of Redis. So a
// timeout of ioredis has two halves, one after the other: a stall costs the first, and the second leaves time to write and to read.

import { Command, Redis } from 'ioredis'

// By these names ioredis clears the timers.
type TimedCommand = Pick<Command, 'reject'> & {
  _commandTimeoutTimer?: NodeJS.Timeout
  setTimeout(ms: number): void
}
type WatchedConnection = Pick<Redis, 'stream' | 'options'> & {
  readonly commandQueue: { readonly length: number }
  socketTimeoutTimer: NodeJS.Timeout | undefined
  setSocketTimeout(): void
}

const commands = Command.prototype as unknown as TimedCommand
commands.setTimeout = function (ms) {
  this._commandTimeoutTimer ??= setTimeout(() => {
    this._commandTimeoutTimer = setTimeout(() => this.reject(new Error('Command timed out')), ms / 2)
  }, ms / 2)
}

const connections = Redis.prototype as unknown as WatchedConnection
connections.setSocketTimeout = function () {
  const { stream } = this
  const ms = this.options.socketTimeout ?? 0
  const drop = () => stream.destroy(new Error(`it did not answer within ${ms} ms`))
  this.socketTimeoutTimer = setTimeout(() => {
    this.socketTimeoutTimer = setTimeout(drop, ms / 2)
  }, ms / 2)
  stream.once('data', () => {
    clearTimeout(this.socketTimeoutTimer)
    this.socketTimeoutTimer = undefined
    if (this.commandQueue.length > 0) this.setSocketTimeout()
  })
}
