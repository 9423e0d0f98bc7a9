// Resolves the path of the catalogue's file: the configured one, relative to the working directory, or the file that ships
// with the product.

import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The absolute path. @param configured null for the product's own file */
export const catalogueFile = (configured: string | null): string =>
  configured === null ? fileURLToPath(new URL('../../locations.json', import.meta.url)) : resolve(configured)
