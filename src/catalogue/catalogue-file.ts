// Which file the places are read from: the one that the configuration names, seen from where the process was started, or
// the one that comes with the product, wherever that was.

import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The whole path. @param configured null for the product's own file */
export const catalogueFile = (configured: string | null): string =>
  configured === null ? fileURLToPath(new URL('../../locations.json', import.meta.url)) : resolve(configured)
