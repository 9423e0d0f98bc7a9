// Leaves a server that became a replica, which takes no writes: a connection anew finds the new master behind the same address, or
// through Sentinel. Until there is one, the server counts as away.

import type { AbstractConnector, Redis } from 'ioredis'

const reason = 'it is a replica, which takes no writes'

/** @param onReplica called when the connection is about to be closed for it, with the reason */
export const leaveReplicas = (redis: Redis, onReplica: (reason: Error) => void): void => {
  let left: unknown
  // ioredis asks for each refused command, and would close the connection for each.
  redis.options.reconnectOnError = error => {
    if (!error.message.startsWith('READONLY') || redis.stream === left) return false
    left = redis.stream
    onReplica(new Error(reason))
    return true
  }
  // Sentinel names a master, and ioredis checks there that it is one.
  if (redis.options.sentinels) return
  const { connector } = redis as unknown as { connector: AbstractConnector }
  // Before a connection is ready: nobody takes Redis for back, and the pauses between the tries grow.
  connector.check = ({ role } = {}) => {
    if (role !== 'slave') return true
    onReplica(new Error(reason))
    return false
  }
}
