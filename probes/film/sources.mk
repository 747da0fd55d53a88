FILM := \
    probes/film/film.c \
    probes/film/film_scene.c \
    probes/film/fixture.asm \
    probes/film/film_command.c
