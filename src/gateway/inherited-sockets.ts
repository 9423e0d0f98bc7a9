// The sockets that the process which started this one, such as systemd, had opened for it: sd_listen_fds(3). They go on
// listening while this process is replaced by the next, so that no connection is refused meanwhile.

import { InputError } from '../errors.ts'

const listeners = ['api', 'ops', 'health'] as const
type ListenerName = (typeof listeners)[number]

/** File descriptors by listener. */
export type InheritedSockets = { readonly [name in ListenerName]?: number }

const firstDescriptor = 3

/**
 * The sockets that the environment names, when they are for this process: by their names, or the first for the API.
 * @throws InputError when they are more than there are listeners for, or named after none
 */
export const inheritedSockets = (
  env: Readonly<Record<string, string | undefined>>,
  pid: number,
): InheritedSockets => {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = '' } = env
  // They were for the process that started this one.
  if (LISTEN_PID !== String(pid)) return {}
  if (LISTEN_FDS === undefined || !/^[1-9]\d{0,3}$/.test(LISTEN_FDS))
    throw new InputError(`LISTEN_FDS is ${JSON.stringify(LISTEN_FDS ?? '')}, but must be a number of sockets`)
  const count = Number(LISTEN_FDS)
  const names = LISTEN_FDNAMES === '' ? [] : LISTEN_FDNAMES.split(':')
  if (names.length > 0 && names.length !== count)
    throw new InputError(
      `LISTEN_FDNAMES is ${JSON.stringify(LISTEN_FDNAMES)}, but must have ${count} names, as LISTEN_FDS says`,
    )
  const found: { [name in ListenerName]?: number } = {}
  for (let i = 0; i < count; i++) {
    const given = names[i] ?? ''
    // systemd gives a socket without a name that of its unit.
    const name = listeners.find(each => each === given) ?? (i === 0 ? 'api' : undefined)
    if (name === undefined || found[name] !== undefined)
      throw new InputError(
        `socket ${i + 1} of ${count} that this process inherits is named ${JSON.stringify(given)}; allowed: one each named ` +
          'api, ops and health (FileDescriptorName= of the socket unit), of which the first may have any name and is for the API',
      )
    found[name] = firstDescriptor + i
  }
  return found
}
