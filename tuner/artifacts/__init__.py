"""The artifact store: content-addressed directories that are whole or absent; failures are remembered too."""
