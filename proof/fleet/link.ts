// A TCP proxy on loopback with a fault that can be set and ended at any moment: what stands between a gateway and Redis, and
// between the gateways and the provider. Knows no protocol.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { LinkFault } from '../steps.ts'

export type Link = {
  readonly port: number
  /** Undefined ends the fault; connections that it held up go on. */
  set(fault: LinkFault | undefined): void
  /** Ends all connections. */
  reset(): void
  /** Ends all connections, and takes none any more. */
  close(): void
}

type Connection = { readonly client: Socket; readonly server: Socket; flush(): void; replied: number }

export const openLink = async (targetPort: number): Promise<Link> => {
  let fault: LinkFault | undefined
  let isClosed = false
  const open = new Set<Connection>()

  const listener = createServer(client => {
    if (isClosed || fault?.kind === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const server = connect(targetPort, '127.0.0.1')
    const connection = joined(client, server, () => fault)
    open.add(connection)
    const end = (): void => {
      open.delete(connection)
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', end)
      socket.on('close', end)
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  const reset = (): void => {
    for (const { client, server } of [...open]) for (const socket of [client, server]) resetNow(socket)
  }
  return {
    port: (listener.address() as AddressInfo).port,
    set: next => {
      fault = next
      if (next?.kind === 'refuse' || next?.kind === 'reset') reset()
      for (const connection of open) {
        connection.replied = 0
        connection.flush()
      }
    },
    reset,
    close: () => {
      isClosed = true
      listener.close()
      reset()
    },
  }
}

/** A reset of Node waits for what is still being written, and leaves open what is being ended; neither may outlive its link. */
const resetNow = (socket: Socket): void => {
  if (socket.writableEnded || socket.writableLength > 0) socket.destroy()
  else socket.resetAndDestroy()
}

let passed = 0
/** A time of its own for each of what passes, the same times in each run. */
const spread = (upToMs: number): number => (++passed * 7_919) % (upToMs + 1)

/** Passes bytes both ways, as the fault in force says; what is held up keeps its order. */
const joined = (client: Socket, server: Socket, fault: () => LinkFault | undefined): Connection => {
  const connection: Connection = { client, server, flush: () => {}, replied: 0 }
  const ways = [
    passage(server, chunk => chunk, fault),
    passage(client, chunk => damaged(connection, chunk, fault()), fault),
  ]
  client.on('data', ways[0]?.take as (chunk: Buffer) => void)
  server.on('data', ways[1]?.take as (chunk: Buffer) => void)
  connection.flush = () => {
    for (const way of ways) way.flush()
  }
  return connection
}

const passage = (
  to: Socket,
  change: (chunk: Buffer) => Buffer | undefined,
  fault: () => LinkFault | undefined,
) => {
  const held: Buffer[] = []
  let timer: NodeJS.Timeout | undefined
  const write = (chunk: Buffer): void => {
    const changed = change(chunk)
    if (changed && !to.destroyed) to.write(changed)
  }
  const flush = (): void => {
    const now = fault()
    if (timer || held.length === 0 || now?.kind === 'black-hole') return
    if (now?.kind !== 'delay' && now?.kind !== 'reorder' && now?.kind !== 'trickle') {
      for (const chunk of held.splice(0)) write(chunk)
      return
    }
    timer = setTimeout(
      () => {
        timer = undefined
        const all = Buffer.concat(held.splice(0))
        // Bodies are long and a seed is short, so a trickle is some hundred parts at most.
        const size = now.kind === 'trickle' ? Math.max(now.bytes, Math.ceil(all.length / 100)) : all.length
        write(all.subarray(0, size))
        if (size < all.length) held.push(all.subarray(size))
        flush()
      },
      now.kind === 'delay' ? now.ms : now.kind === 'trickle' ? now.everyMs : spread(now.upToMs),
    ).unref()
  }
  return {
    take: (chunk: Buffer): void => {
      held.push(chunk)
      flush()
    },
    flush,
  }
}

/** What a reply becomes; undefined when its connection has ended instead. */
const damaged = (connection: Connection, chunk: Buffer, fault: LinkFault | undefined): Buffer | undefined => {
  const before = connection.replied
  connection.replied += chunk.length
  if (fault?.kind !== 'cut' && fault?.kind !== 'corrupt') return chunk
  const at = fault.afterBytes - before
  if (at > chunk.length) return chunk
  const kept = chunk.subarray(0, Math.max(0, at))
  // No reply of Redis begins so, and no HTTP and no gzip continues so: nothing may be read out of it.
  const garbage = fault.kind === 'cut' ? '' : Buffer.alloc(Math.max(8, chunk.length - kept.length), '\x01?')
  const sent = Buffer.concat([kept, Buffer.from(garbage)])
  if (sent.length > 0) connection.client.write(sent)
  connection.client.end()
  connection.server.destroy()
  return undefined
}
