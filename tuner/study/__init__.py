"""The study: objective, suggestions, store and builds of one run; the only room that knows Optuna and SQLAlchemy."""
