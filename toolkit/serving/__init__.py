"""The server: OpenAI's and LibreTranslate's interfaces over continuous batching, and the page."""
