// e_1_2_1_3_16_16: in1 tmp0
void e_1_2_1_3_16_16(float* restrict data0, float* restrict data1) {
  for (int ridx4 = 0; ridx4 < 6; ridx4++) {
    long alu1 = (((long)ridx4)*256L);
    for (int ridx8 = 0; ridx8 < 16; ridx8++) {
      long alu2 = ((long)ridx8);
      long alu3 = (alu1+(alu2*16L));
      float val4 = data0[alu3];
      data1[(alu1+alu2)] = (val4*2.0f);
      float val5 = data0[(alu3+1L)];
      data1[((alu1+16L)+alu2)] = (val5*2.0f);
      float val6 = data0[(alu3+2L)];
      data1[((alu1+32L)+alu2)] = (val6*2.0f);
      float val7 = data0[(alu3+3L)];
      data1[((alu1+48L)+alu2)] = (val7*2.0f);
      float val8 = data0[(alu3+4L)];
      data1[((alu1+64L)+alu2)] = (val8*2.0f);
      float val9 = data0[(alu3+5L)];
      data1[((alu1+80L)+alu2)] = (val9*2.0f);
      float val10 = data0[(alu3+6L)];
      data1[((alu1+96L)+alu2)] = (val10*2.0f);
      float val11 = data0[(alu3+7L)];
      data1[((alu1+112L)+alu2)] = (val11*2.0f);
      float val12 = data0[(alu3+8L)];
      data1[((alu1+128L)+alu2)] = (val12*2.0f);
      float val13 = data0[(alu3+9L)];
      data1[((alu1+144L)+alu2)] = (val13*2.0f);
      float val14 = data0[(alu3+10L)];
      data1[((alu1+160L)+alu2)] = (val14*2.0f);
      float val15 = data0[(alu3+11L)];
      data1[((alu1+176L)+alu2)] = (val15*2.0f);
      float val16 = data0[(alu3+12L)];
      data1[((alu1+192L)+alu2)] = (val16*2.0f);
      float val17 = data0[(alu3+13L)];
      data1[((alu1+208L)+alu2)] = (val17*2.0f);
      float val18 = data0[(alu3+14L)];
      data1[((alu1+224L)+alu2)] = (val18*2.0f);
      float val19 = data0[(alu3+15L)];
      data1[((alu1+240L)+alu2)] = (val19*2.0f);
    }
  }
}

// r_1_2_48_48: in0 tmp0 tmp1
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

enum {r_1_2_48_48_steps = 8};
void r_1_2_48_48(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx17 = first; ridx17 < last; ridx17++) {
    long alu1 = ((long)ridx17);
    long alu2 = (alu1*288L);
    long alu3 = (alu1*96L);
    long alu4 = (alu2+48L);
    long alu5 = (alu2+96L);
    long alu6 = (alu2+144L);
    long alu7 = (alu2+192L);
    long alu8 = (alu2+240L);
    for (int ridx0 = 0; ridx0 < 2; ridx0++) {
      long alu9 = ((long)ridx0);
      long alu10 = (alu9*2304L);
      long alu11 = (alu9*768L);
      for (int ridx6 = 0; ridx6 < 3; ridx6++) {
        long alu12 = ((long)ridx6);
        long alu13 = (alu12*16L);
        f32x8 acc0;
        acc0 = (0.0f-(f32x8){});
        long alu14 = (alu12*256L);
        f32x8 acc1;
        acc1 = (0.0f-(f32x8){});
        f32x8 acc2;
        acc2 = (0.0f-(f32x8){});
        f32x8 acc3;
        acc3 = (0.0f-(f32x8){});
        f32x8 acc4;
        acc4 = (0.0f-(f32x8){});
        f32x8 acc5;
        acc5 = (0.0f-(f32x8){});
        f32x8 acc6;
        acc6 = (0.0f-(f32x8){});
        f32x8 acc7;
        acc7 = (0.0f-(f32x8){});
        f32x8 acc8;
        acc8 = (0.0f-(f32x8){});
        f32x8 acc9;
        acc9 = (0.0f-(f32x8){});
        f32x8 acc10;
        acc10 = (0.0f-(f32x8){});
        f32x8 acc11;
        acc11 = (0.0f-(f32x8){});
        #pragma GCC unroll 4
        for (int ridx3 = 0; ridx3 < 16; ridx3++) {
          f32x8 val15 = acc0;
          long alu16 = ((long)ridx3);
          float val17 = data0[(alu11+(alu3+alu16))];
          long alu18 = (alu16*16L);
          f32x8 val19 = *(f32x8u*)(data1+(alu11+(alu14+alu18)));
          acc0 = (val15+(val17*val19));
          f32x8 val20 = acc1;
          f32x8 val21 = *(f32x8u*)(data1+(alu11+(alu14+(alu18+8L))));
          acc1 = (val20+(val17*val21));
          f32x8 val22 = acc2;
          float val23 = data0[(alu11+((alu3+16L)+alu16))];
          acc2 = (val22+(val23*val19));
          f32x8 val24 = acc3;
          acc3 = (val24+(val23*val21));
          f32x8 val25 = acc4;
          float val26 = data0[(alu11+((alu3+32L)+alu16))];
          acc4 = (val25+(val26*val19));
          f32x8 val27 = acc5;
          acc5 = (val27+(val26*val21));
          f32x8 val28 = acc6;
          float val29 = data0[(alu11+((alu3+48L)+alu16))];
          acc6 = (val28+(val29*val19));
          f32x8 val30 = acc7;
          acc7 = (val30+(val29*val21));
          f32x8 val31 = acc8;
          float val32 = data0[(alu11+((alu3+64L)+alu16))];
          acc8 = (val31+(val32*val19));
          f32x8 val33 = acc9;
          acc9 = (val33+(val32*val21));
          f32x8 val34 = acc10;
          float val35 = data0[(alu11+((alu3+80L)+alu16))];
          acc10 = (val34+(val35*val19));
          f32x8 val36 = acc11;
          acc11 = (val36+(val35*val21));
        }
        f32x8 val37 = acc0;
        *(f32x8u*)(data2+(alu10+(alu2+alu13))) = val37;
        long alu38 = (alu13+8L);
        f32x8 val39 = acc1;
        *(f32x8u*)(data2+(alu10+(alu2+alu38))) = val39;
        f32x8 val40 = acc2;
        *(f32x8u*)(data2+(alu10+(alu4+alu13))) = val40;
        f32x8 val41 = acc3;
        *(f32x8u*)(data2+(alu10+(alu4+alu38))) = val41;
        f32x8 val42 = acc4;
        *(f32x8u*)(data2+(alu10+(alu5+alu13))) = val42;
        f32x8 val43 = acc5;
        *(f32x8u*)(data2+(alu10+(alu5+alu38))) = val43;
        f32x8 val44 = acc6;
        *(f32x8u*)(data2+(alu10+(alu6+alu13))) = val44;
        f32x8 val45 = acc7;
        *(f32x8u*)(data2+(alu10+(alu6+alu38))) = val45;
        f32x8 val46 = acc8;
        *(f32x8u*)(data2+(alu10+(alu7+alu13))) = val46;
        f32x8 val47 = acc9;
        *(f32x8u*)(data2+(alu10+(alu7+alu38))) = val47;
        f32x8 val48 = acc10;
        *(f32x8u*)(data2+(alu10+(alu8+alu13))) = val48;
        f32x8 val49 = acc11;
        *(f32x8u*)(data2+(alu10+(alu8+alu38))) = val49;
      }
    }
  }
}

// fused4_1_2_48_48: tmp1 tmp2
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
}

static inline float across_max_f32x8_8(f32x8 x) {
  float y0 = ((x[0]>x[4])?x[0]:x[4]);
  float y1 = ((x[1]>x[5])?x[1]:x[5]);
  float y2 = ((x[2]>x[6])?x[2]:x[6]);
  float y3 = ((x[3]>x[7])?x[3]:x[7]);
  float y4 = ((y0>y2)?y0:y2);
  float y5 = ((y1>y3)?y1:y3);
  float y6 = ((y4>y5)?y4:y5);
  return y6;
}

static inline float across_add_f32x8_8(f32x8 x) {
  float y0 = (x[0]+x[4]);
  float y1 = (x[1]+x[5]);
  float y2 = (x[2]+x[6]);
  float y3 = (x[3]+x[7]);
  float y4 = (y0+y2);
  float y5 = (y1+y3);
  float y6 = (y4+y5);
  return y6;
}

static void r_1_2_48_0(float* restrict data0, float* restrict data1, long first, long last) {
  for (int ridx3 = first; ridx3 < last; ridx3++) {
    for (int ridx4 = 0; ridx4 < 12; ridx4++) {
      long alu1 = ((long)ridx4);
      int alu2 = (((ridx3%4)*12)+ridx4);
      long alu3 = ((((long)ridx3)*576L)+(alu1*48L));
      f32x8 val4 = *(f32x8u*)(data0+alu3);
      f32x8 alu5 = select_f32x8((((i32x8){0,1,2,3,4,5,6,7})<=alu2), (val4*0.25f), (-INFINITY-(f32x8){}));
      f32x8 val6 = *(f32x8u*)(data0+(alu3+8L));
      f32x8 alu7 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+8)<=alu2), (val6*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu8 = select_f32x8((alu5>alu7), alu5, alu7);
      f32x8 val9 = *(f32x8u*)(data0+(alu3+16L));
      f32x8 alu10 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+16)<=alu2), (val9*0.25f), (-INFINITY-(f32x8){}));
      f32x8 val11 = *(f32x8u*)(data0+(alu3+24L));
      f32x8 alu12 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+24)<=alu2), (val11*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu13 = select_f32x8((alu10>alu12), alu10, alu12);
      f32x8 alu14 = select_f32x8((alu8>alu13), alu8, alu13);
      float alu15 = across_max_f32x8_8(alu14);
      float acc0;
      acc0 = -INFINITY;
      for (int ridx6 = 0; ridx6 < 16; ridx6++) {
        float val16 = acc0;
        float val17 = data0[(alu3+(((long)ridx6)+32L))];
        float alu18 = (((ridx6+32)<=alu2)?(val17*0.25f):-INFINITY);
        acc0 = ((val16>alu18)?val16:alu18);
      }
      float val19 = acc0;
      data1[alu1] = ((alu15>val19)?alu15:val19);
    }
  }
}

static void e_1_2_48_48_1(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx3 = first; ridx3 < last; ridx3++) {
    for (int ridx21 = 0; ridx21 < 12; ridx21++) {
      long alu1 = ((long)ridx21);
      int alu2 = (((ridx3%4)*12)+ridx21);
      long alu3 = (alu1*48L);
      float val4 = data1[alu1];
      long alu5 = ((((long)ridx3)*576L)+alu3);
      float alu6 = (val4*-1.0f);
      f32x8 val7 = *(f32x8u*)(data0+alu5);
      f32x8 val8 = *(f32x8u*)(data0+(alu5+8L));
      f32x8 val9 = *(f32x8u*)(data0+(alu5+16L));
      f32x8 val10 = *(f32x8u*)(data0+(alu5+24L));
      f32x8 val11 = *(f32x8u*)(data0+(alu5+32L));
      f32x8 val12 = *(f32x8u*)(data0+(alu5+40L));
      f32x8 alu13 = select_f32x8((((i32x8){0,1,2,3,4,5,6,7})<=alu2), (val7*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu14 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+8)<=alu2), (val8*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu15 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+16)<=alu2), (val9*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu16 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+24)<=alu2), (val10*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu17 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+32)<=alu2), (val11*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu18 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+40)<=alu2), (val12*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu19 = ((alu13+alu6)*1.4426950408889634f);
      f32x8 alu20 = ((alu14+alu6)*1.4426950408889634f);
      f32x8 alu21 = ((alu15+alu6)*1.4426950408889634f);
      f32x8 alu22 = ((alu16+alu6)*1.4426950408889634f);
      f32x8 alu23 = ((alu17+alu6)*1.4426950408889634f);
      f32x8 alu24 = ((alu18+alu6)*1.4426950408889634f);
      i32x8 alu25 = (alu19<-150.0f);
      i32x8 alu26 = (alu20<-150.0f);
      i32x8 alu27 = (alu21<-150.0f);
      i32x8 alu28 = (alu22<-150.0f);
      i32x8 alu29 = (alu23<-150.0f);
      i32x8 alu30 = (alu24<-150.0f);
      f32x8 alu31 = select_f32x8(alu25, (0.0f-(f32x8){}), alu19);
      f32x8 alu32 = select_f32x8(alu26, (0.0f-(f32x8){}), alu20);
      f32x8 alu33 = select_f32x8(alu27, (0.0f-(f32x8){}), alu21);
      f32x8 alu34 = select_f32x8(alu28, (0.0f-(f32x8){}), alu22);
      f32x8 alu35 = select_f32x8(alu29, (0.0f-(f32x8){}), alu23);
      f32x8 alu36 = select_f32x8(alu30, (0.0f-(f32x8){}), alu24);
      f32x8 alu37 = select_f32x8((129.0f<alu31), (129.0f-(f32x8){}), alu31);
      f32x8 alu38 = select_f32x8((129.0f<alu32), (129.0f-(f32x8){}), alu32);
      f32x8 alu39 = select_f32x8((129.0f<alu33), (129.0f-(f32x8){}), alu33);
      f32x8 alu40 = select_f32x8((129.0f<alu34), (129.0f-(f32x8){}), alu34);
      f32x8 alu41 = select_f32x8((129.0f<alu35), (129.0f-(f32x8){}), alu35);
      f32x8 alu42 = select_f32x8((129.0f<alu36), (129.0f-(f32x8){}), alu36);
      f32x8 alu43 = (alu37+12582912.0f);
      f32x8 alu44 = (alu38+12582912.0f);
      f32x8 alu45 = (alu39+12582912.0f);
      f32x8 alu46 = (alu40+12582912.0f);
      f32x8 alu47 = (alu41+12582912.0f);
      f32x8 alu48 = (alu42+12582912.0f);
      f32x8 alu49 = ((alu43+-12582912.0f)*-1.0f);
      i32x8 alu50 = (((i32x8)alu43)+-1262485504);
      f32x8 alu51 = ((alu44+-12582912.0f)*-1.0f);
      i32x8 alu52 = (((i32x8)alu44)+-1262485504);
      f32x8 alu53 = ((alu45+-12582912.0f)*-1.0f);
      i32x8 alu54 = (((i32x8)alu45)+-1262485504);
      f32x8 alu55 = ((alu46+-12582912.0f)*-1.0f);
      i32x8 alu56 = (((i32x8)alu46)+-1262485504);
      f32x8 alu57 = ((alu47+-12582912.0f)*-1.0f);
      i32x8 alu58 = (((i32x8)alu47)+-1262485504);
      f32x8 alu59 = ((alu48+-12582912.0f)*-1.0f);
      i32x8 alu60 = (((i32x8)alu48)+-1262485504);
      f32x8 alu61 = (alu37+alu49);
      i32x8 alu62 = (alu50>>1);
      f32x8 alu63 = (alu38+alu51);
      i32x8 alu64 = (alu52>>1);
      f32x8 alu65 = (alu39+alu53);
      i32x8 alu66 = (alu54>>1);
      f32x8 alu67 = (alu40+alu55);
      i32x8 alu68 = (alu56>>1);
      f32x8 alu69 = (alu41+alu57);
      i32x8 alu70 = (alu58>>1);
      f32x8 alu71 = (alu42+alu59);
      i32x8 alu72 = (alu60>>1);
      f32x8 alu73 = ((alu61*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu74 = ((f32x8)((alu62+127)<<23));
      f32x8 alu75 = ((f32x8)(((alu50+(alu62*-1))+127)<<23));
      f32x8 alu76 = ((alu63*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu77 = ((f32x8)((alu64+127)<<23));
      f32x8 alu78 = ((f32x8)(((alu52+(alu64*-1))+127)<<23));
      f32x8 alu79 = ((alu65*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu80 = ((f32x8)((alu66+127)<<23));
      f32x8 alu81 = ((f32x8)(((alu54+(alu66*-1))+127)<<23));
      f32x8 alu82 = ((alu67*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu83 = ((f32x8)((alu68+127)<<23));
      f32x8 alu84 = ((f32x8)(((alu56+(alu68*-1))+127)<<23));
      f32x8 alu85 = ((alu69*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu86 = ((f32x8)((alu70+127)<<23));
      f32x8 alu87 = ((f32x8)(((alu58+(alu70*-1))+127)<<23));
      f32x8 alu88 = ((alu71*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu89 = ((f32x8)((alu72+127)<<23));
      f32x8 alu90 = ((f32x8)(((alu60+(alu72*-1))+127)<<23));
      f32x8 alu91 = (alu61*((alu61*alu73)+0.009618008509278297f));
      f32x8 alu92 = (alu63*((alu63*alu76)+0.009618008509278297f));
      f32x8 alu93 = (alu65*((alu65*alu79)+0.009618008509278297f));
      f32x8 alu94 = (alu67*((alu67*alu82)+0.009618008509278297f));
      f32x8 alu95 = (alu69*((alu69*alu85)+0.009618008509278297f));
      f32x8 alu96 = (alu71*((alu71*alu88)+0.009618008509278297f));
      f32x8 alu97 = (alu61*(alu91+0.055503278970718384f));
      f32x8 alu98 = (alu63*(alu92+0.055503278970718384f));
      f32x8 alu99 = (alu65*(alu93+0.055503278970718384f));
      f32x8 alu100 = (alu67*(alu94+0.055503278970718384f));
      f32x8 alu101 = (alu69*(alu95+0.055503278970718384f));
      f32x8 alu102 = (alu71*(alu96+0.055503278970718384f));
      f32x8 alu103 = (alu61*(alu97+0.24022650718688965f));
      f32x8 alu104 = (alu63*(alu98+0.24022650718688965f));
      f32x8 alu105 = (alu65*(alu99+0.24022650718688965f));
      f32x8 alu106 = (alu67*(alu100+0.24022650718688965f));
      f32x8 alu107 = (alu69*(alu101+0.24022650718688965f));
      f32x8 alu108 = (alu71*(alu102+0.24022650718688965f));
      f32x8 alu109 = (alu61*(alu103+0.6931471824645996f));
      f32x8 alu110 = (alu63*(alu104+0.6931471824645996f));
      f32x8 alu111 = (alu65*(alu105+0.6931471824645996f));
      f32x8 alu112 = (alu67*(alu106+0.6931471824645996f));
      f32x8 alu113 = (alu69*(alu107+0.6931471824645996f));
      f32x8 alu114 = (alu71*(alu108+0.6931471824645996f));
      f32x8 alu115 = ((alu109+1.0f)*alu74);
      f32x8 alu116 = ((alu110+1.0f)*alu77);
      f32x8 alu117 = ((alu111+1.0f)*alu80);
      f32x8 alu118 = ((alu112+1.0f)*alu83);
      f32x8 alu119 = ((alu113+1.0f)*alu86);
      f32x8 alu120 = ((alu114+1.0f)*alu89);
      *(f32x8u*)(data2+alu3) = select_f32x8(alu25, (0.0f-(f32x8){}), (alu115*alu75));
      *(f32x8u*)(data2+(alu3+8L)) = select_f32x8(alu26, (0.0f-(f32x8){}), (alu116*alu78));
      *(f32x8u*)(data2+(alu3+16L)) = select_f32x8(alu27, (0.0f-(f32x8){}), (alu117*alu81));
      *(f32x8u*)(data2+(alu3+24L)) = select_f32x8(alu28, (0.0f-(f32x8){}), (alu118*alu84));
      *(f32x8u*)(data2+(alu3+32L)) = select_f32x8(alu29, (0.0f-(f32x8){}), (alu119*alu87));
      *(f32x8u*)(data2+(alu3+40L)) = select_f32x8(alu30, (0.0f-(f32x8){}), (alu120*alu90));
    }
  }
}

static void r_1_2_48_2(float* restrict data0, float* restrict data1, long first, long last) {
  for (int ridx3 = first; ridx3 < last; ridx3++) {
    for (int ridx4 = 0; ridx4 < 12; ridx4++) {
      long alu1 = ((long)ridx4);
      long alu2 = (alu1*48L);
      f32x8 val3 = *(f32x8u*)(data0+alu2);
      f32x8 val4 = *(f32x8u*)(data0+(alu2+8L));
      f32x8 val5 = *(f32x8u*)(data0+(alu2+16L));
      f32x8 val6 = *(f32x8u*)(data0+(alu2+24L));
      f32x8 alu7 = ((val3+val4)+(val5+val6));
      float alu8 = across_add_f32x8_8(alu7);
      float acc0;
      acc0 = 0.0f;
      for (int ridx6 = 0; ridx6 < 16; ridx6++) {
        float val9 = acc0;
        float val10 = data0[(alu2+(((long)ridx6)+32L))];
        acc0 = (val9+val10);
      }
      float val11 = acc0;
      data1[alu1] = (alu8+val11);
    }
  }
}

static void e_1_2_48_48_3(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx3 = first; ridx3 < last; ridx3++) {
    for (int ridx21 = 0; ridx21 < 12; ridx21++) {
      long alu1 = ((long)ridx21);
      long alu2 = (alu1*48L);
      long alu3 = ((((long)ridx3)*576L)+alu2);
      f32x8 val4 = *(f32x8u*)(data0+alu2);
      float val5 = data1[alu1];
      float alu6 = (1.0f/val5);
      *(f32x8u*)(data2+alu3) = (val4*alu6);
      f32x8 val7 = *(f32x8u*)(data0+(alu2+8L));
      *(f32x8u*)(data2+(alu3+8L)) = (val7*alu6);
      f32x8 val8 = *(f32x8u*)(data0+(alu2+16L));
      *(f32x8u*)(data2+(alu3+16L)) = (val8*alu6);
      f32x8 val9 = *(f32x8u*)(data0+(alu2+24L));
      *(f32x8u*)(data2+(alu3+24L)) = (val9*alu6);
      f32x8 val10 = *(f32x8u*)(data0+(alu2+32L));
      *(f32x8u*)(data2+(alu3+32L)) = (val10*alu6);
      f32x8 val11 = *(f32x8u*)(data0+(alu2+40L));
      *(f32x8u*)(data2+(alu3+40L)) = (val11*alu6);
    }
  }
}

enum {fused4_1_2_48_48_steps = 8};
enum {fused4_1_2_48_48_scratch = 2368};
void fused4_1_2_48_48(float* restrict data0, float* restrict data1, char* scratch, long first, long last) {
  float* local0 = (float*)(scratch+0);
  float* local1 = (float*)(scratch+64);
  float* local2 = (float*)(scratch+0);
  for (long step = first; step < last; step++) {
    r_1_2_48_0(data0, local0, step, step+1);
    e_1_2_48_48_1(data0, local0, local1, step, step+1);
    r_1_2_48_2(local1, local2, step, step+1);
    e_1_2_48_48_3(local1, local2, data1, step, step+1);
  }
}

// e_1_2_1_1_48_16: in2 tmp3
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

void e_1_2_1_1_48_16(float* restrict data0, float* restrict data1) {
  for (int ridx5 = 0; ridx5 < 48; ridx5++) {
    long alu1 = (((long)ridx5)*32L);
    f32x8 val2 = *(f32x8u*)(data0+alu1);
    *(f32x8u*)(data1+alu1) = (val2*3.0f);
    long alu3 = (alu1+8L);
    f32x8 val4 = *(f32x8u*)(data0+alu3);
    *(f32x8u*)(data1+alu3) = (val4*3.0f);
    long alu5 = (alu1+16L);
    f32x8 val6 = *(f32x8u*)(data0+alu5);
    *(f32x8u*)(data1+alu5) = (val6*3.0f);
    long alu7 = (alu1+24L);
    f32x8 val8 = *(f32x8u*)(data0+alu7);
    *(f32x8u*)(data1+alu7) = (val8*3.0f);
  }
}

// r_1_2_48_16: tmp2 tmp3 out0
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

enum {r_1_2_48_16_steps = 8};
void r_1_2_48_16(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx15 = first; ridx15 < last; ridx15++) {
    long alu1 = ((long)ridx15);
    long alu2 = (alu1*96L);
    long alu3 = (alu1*288L);
    for (int ridx0 = 0; ridx0 < 2; ridx0++) {
      long alu4 = ((long)ridx0);
      long alu5 = (alu4*768L);
      f32x8 acc0;
      acc0 = (0.0f-(f32x8){});
      long alu6 = (alu4*2304L);
      f32x8 acc1;
      acc1 = (0.0f-(f32x8){});
      f32x8 acc2;
      acc2 = (0.0f-(f32x8){});
      f32x8 acc3;
      acc3 = (0.0f-(f32x8){});
      f32x8 acc4;
      acc4 = (0.0f-(f32x8){});
      f32x8 acc5;
      acc5 = (0.0f-(f32x8){});
      f32x8 acc6;
      acc6 = (0.0f-(f32x8){});
      f32x8 acc7;
      acc7 = (0.0f-(f32x8){});
      f32x8 acc8;
      acc8 = (0.0f-(f32x8){});
      f32x8 acc9;
      acc9 = (0.0f-(f32x8){});
      f32x8 acc10;
      acc10 = (0.0f-(f32x8){});
      f32x8 acc11;
      acc11 = (0.0f-(f32x8){});
      #pragma GCC unroll 4
      for (int ridx3 = 0; ridx3 < 48; ridx3++) {
        f32x8 val7 = acc0;
        long alu8 = ((long)ridx3);
        float val9 = data0[(alu6+(alu3+alu8))];
        long alu10 = (alu8*16L);
        f32x8 val11 = *(f32x8u*)(data1+(alu5+alu10));
        acc0 = (val7+(val9*val11));
        f32x8 val12 = acc1;
        f32x8 val13 = *(f32x8u*)(data1+(alu5+(alu10+8L)));
        acc1 = (val12+(val9*val13));
        f32x8 val14 = acc2;
        float val15 = data0[(alu6+((alu3+48L)+alu8))];
        acc2 = (val14+(val15*val11));
        f32x8 val16 = acc3;
        acc3 = (val16+(val15*val13));
        f32x8 val17 = acc4;
        float val18 = data0[(alu6+((alu3+96L)+alu8))];
        acc4 = (val17+(val18*val11));
        f32x8 val19 = acc5;
        acc5 = (val19+(val18*val13));
        f32x8 val20 = acc6;
        float val21 = data0[(alu6+((alu3+144L)+alu8))];
        acc6 = (val20+(val21*val11));
        f32x8 val22 = acc7;
        acc7 = (val22+(val21*val13));
        f32x8 val23 = acc8;
        float val24 = data0[(alu6+((alu3+192L)+alu8))];
        acc8 = (val23+(val24*val11));
        f32x8 val25 = acc9;
        acc9 = (val25+(val24*val13));
        f32x8 val26 = acc10;
        float val27 = data0[(alu6+((alu3+240L)+alu8))];
        acc10 = (val26+(val27*val11));
        f32x8 val28 = acc11;
        acc11 = (val28+(val27*val13));
      }
      f32x8 val29 = acc0;
      *(f32x8u*)(data2+(alu5+alu2)) = val29;
      f32x8 val30 = acc1;
      *(f32x8u*)(data2+(alu5+(alu2+8L))) = val30;
      f32x8 val31 = acc2;
      *(f32x8u*)(data2+(alu5+(alu2+16L))) = val31;
      f32x8 val32 = acc3;
      *(f32x8u*)(data2+(alu5+(alu2+24L))) = val32;
      f32x8 val33 = acc4;
      *(f32x8u*)(data2+(alu5+(alu2+32L))) = val33;
      f32x8 val34 = acc5;
      *(f32x8u*)(data2+(alu5+(alu2+40L))) = val34;
      f32x8 val35 = acc6;
      *(f32x8u*)(data2+(alu5+(alu2+48L))) = val35;
      f32x8 val36 = acc7;
      *(f32x8u*)(data2+(alu5+(alu2+56L))) = val36;
      f32x8 val37 = acc8;
      *(f32x8u*)(data2+(alu5+(alu2+64L))) = val37;
      f32x8 val38 = acc9;
      *(f32x8u*)(data2+(alu5+(alu2+72L))) = val38;
      f32x8 val39 = acc10;
      *(f32x8u*)(data2+(alu5+(alu2+80L))) = val39;
      f32x8 val40 = acc11;
      *(f32x8u*)(data2+(alu5+(alu2+88L))) = val40;
    }
  }
}
