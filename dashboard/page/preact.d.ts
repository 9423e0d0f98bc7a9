// Preact as the browser imports it: the listener sends the package's own file by this name.

export * from 'preact'
