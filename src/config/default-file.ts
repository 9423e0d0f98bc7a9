// Where the defaults are. defaults.ts reads their comments, shipped-defaults.ts their values.

/** The file that holds every default, wherever the process was started. */
export const DEFAULT_FILE = new URL('../../config/default.yaml', import.meta.url)

/** The name of the file of defaults in a sentence. */
export const DEFAULT_NAME = 'config/default.yaml'
