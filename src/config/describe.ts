// Prints the configuration in effect as a config file, after all files and variables are merged. Secrets are hidden; the rest
// can be loaded again as it is.

import { stringify } from 'yaml'
import * as z from 'zod'
import { redactedUrls } from '../redacted-url.ts'
import { secrets } from './kinds.ts'
import { type Config, configSchema } from './schema.ts'
import { coreOf, settings } from './tree.ts'

type Values = { [key: string]: unknown }

const redact = (values: Values, [key = '', ...rest]: readonly string[], hide: (text: string) => string) => {
  const value = values[key]
  if (rest.length > 0) redact(value as Values, rest, hide)
  else if (typeof value === 'string') values[key] = hide(value)
}

/** The whole configuration as YAML, durations as `10m`, sizes as `64MiB`, keys and passwords as `***`. */
export const describeConfig = (config: Config): string => {
  const values = z.encode(configSchema, config as z.output<typeof configSchema>)
  for (const { path, schema } of settings) {
    const secret = secrets.get(coreOf(schema))
    if (secret) redact(values, path, text => secret.redact(text))
  }
  return stringify(values, (_key, value) => (typeof value === 'string' ? redactedUrls(value) : value), {
    lineWidth: 0,
  })
}
