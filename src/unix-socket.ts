// Listens on a Unix socket by its path: one that a dead process left behind is replaced, one that is listened on is not.
// Node removes the file when it stops listening.

import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { connect } from 'node:net'

/**
 * @param listen resolves when the server listens there, and has opened the file before it returns
 * @param mode who may connect, as text in octal
 * @throws Error with a code of the system, or one that says what is at the path
 */
export const listenOnSocket = async (
  listen: () => Promise<unknown>,
  path: string,
  mode: string,
): Promise<void> => {
  const fault = socketFault(path)
  if (fault !== undefined) throw new Error(fault)
  try {
    await listen()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    if (await isListenedOn(path)) throw new Error('another process listens there', { cause: error })
    unlinkSync(path)
    await listen()
  }
  // Until here the umask holds, by which others than the owner may not connect.
  chmodSync(path, Number.parseInt(mode, 8))
}

/** Why a path can't be that of a socket: something else is there. */
export const socketFault = (path: string): string | undefined => {
  const there = lstatSync(path, { throwIfNoEntry: false })
  return there === undefined || there.isSocket() ? undefined : 'there is something there that is no socket'
}

/** Whether a process takes connections at a path. */
export const isListenedOn = (path: string): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    // Nobody listens, or the file has gone. A socket that is full or not ours to connect to is another's.
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'),
    )
  })
