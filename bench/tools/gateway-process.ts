// A gateway as a process of a row, with the settings of all rows. What it is requested is for its subject.

import { quietZone } from '../../test/scenarios/keys.ts'
import { type Env, processEnv } from '../../test/scenarios/set-up.ts'
import { product } from '../../test/support/process.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { type Listening, startListening } from './processes.ts'

/** Makes a weather response 10 kB long. */
const hours = '148'

/** Weather that stays fresh for the whole run, and a quota day that does not end in it. */
export const gatewayEnv = (providerUrl: string, more: Env): Env =>
  processEnv(providerUrl, {
    ABOHAWA_WEATHER__HOURLY_HOURS: hours,
    ABOHAWA_CACHE__FRESH_FOR: '6h',
    ABOHAWA_QUOTA__TIME_ZONE: quietZone(),
    ...more,
  })

export const startGateway = (
  scope: Teardown,
  folder: string,
  core: string,
  env: Env,
  {
    program = product,
    processes = 1,
  }: { readonly program?: string | undefined; readonly processes?: number } = {},
): Promise<Listening> => {
  const command = [program, 'serve', '--processes', `${processes}`] as const
  return startListening(scope, folder, core, command, { listeners: ['api', 'ops'], processes }, env)
}

export const logged: Env = { ABOHAWA_LOG__ACCESS: 'true', ABOHAWA_LOG__LEVEL: 'info' }
